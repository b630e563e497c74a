#!/bin/bash
# The course in SageMaker Studio Lab: clone it there, then in a terminal, in its folder:
#   bash utils/cli/places/studio_lab.sh
# The project keeps 15 GB between sessions, of which the course takes 3 GB. Type it again for news.
set -eu
cd "$(dirname "$0")/../../.."

fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2> /dev/null; }

python=python3
if ! fits "$python"; then
  python="$HOME/.conda/envs/trainium-python/bin/python"
  # The environment of the project may have an older Python; the course needs 3.11 to 3.13.
  fits "$python" || conda create --quiet --yes --prefix "${python%/bin/python}" python=3.12 pip
fi

"$python" course.py kernel
"$python" course.py update
echo "Reload the page, open work/notebooks/00_start_here.ipynb and choose the kernel Trainium course."
