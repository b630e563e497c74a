#!/bin/bash
# Lifecycle configuration for JupyterLab in SageMaker Studio: each start of a space brings the course
# up to date and offers the kernel "Trainium course". Set COURSE_URL to your clone of the course.
#
# A configuration may take 5 minutes, and a space whose configuration fails does not open. So the
# work goes on in the background, and what it says is in ~/trainium-course.log. The home folder of a
# space is kept between starts: the first one downloads 1.1 GB, later ones next to nothing.
set -u
COURSE_URL="${COURSE_URL:-}"
COURSE="${COURSE:-$HOME/trainium-course}"
export PATH="/opt/conda/bin:$PATH"

(
  trap '' HUP # the same as nohup: it outlives the configuration
  set -e
  if [ ! -d "$COURSE" ]; then
    [ -n "$COURSE_URL" ] || { echo "Set COURSE_URL in the lifecycle configuration."; exit 1; }
    rm -rf "$COURSE.part"
    git clone --quiet "$COURSE_URL" "$COURSE.part"
    mv "$COURSE.part" "$COURSE"
  fi
  cd "$COURSE"
  python3 course.py kernel
  python3 course.py update
  echo "In $COURSE open work/notebooks/00_start_here.ipynb with the kernel Trainium course."
) > "$HOME/trainium-course.log" 2>&1 < /dev/null &
exit 0
