#!/bin/bash
# 1. The end comes before everything else: the machine stops itself after each of its starts.
cat > /etc/systemd/system/trainium-course-end.service <<UNIT
[Service]
Type=oneshot
ExecStart=/bin/systemctl poweroff
UNIT
cat > /etc/systemd/system/trainium-course-end.timer <<UNIT
[Timer]
OnBootSec={{ minutes }}min
[Install]
WantedBy=timers.target
UNIT
systemctl daemon-reload && systemctl enable --now trainium-course-end.timer || poweroff
# 2. The course and its environment.
export HOME=/root DEBIAN_FRONTEND=noninteractive
apt-get update && apt-get install -y bubblewrap certbot git python3-pip
git clone ADDRESS /srv/course && cd /srv/course && {{ python }} course.py hub --help
# 3. The hub, at each start, as soon as there is a class.
cat > /etc/systemd/system/trainium-course-hub.service <<UNIT
[Unit]
After=network-online.target
Wants=network-online.target
ConditionPathExists=/srv/course/classroom/class.json
[Service]
WorkingDirectory=/srv/course
Environment=HOME=/root
ExecStart=/usr/bin/{{ python }} course.py hub --port 443 --network 0.0.0.0 --certificate /etc/letsencrypt/live/NAME/fullchain.pem --key /etc/letsencrypt/live/NAME/privkey.pem
Restart=on-failure
[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload && systemctl enable trainium-course-hub
