#!/bin/bash
# 1. The end of this machine comes before everything else.
shutdown -P +{{ minutes }} "trainium-course: the hours are over" || poweroff
end=$(date -u -d "+{{ minutes }} minutes" "+%Y-%m-%d %H:%M:%S UTC")
cat > /etc/systemd/system/trainium-course-end.service <<UNIT
[Service]
Type=oneshot
ExecStart=/bin/systemctl poweroff
UNIT
cat > /etc/systemd/system/trainium-course-end.timer <<UNIT
[Timer]
OnCalendar=$end
Persistent=true
[Install]
WantedBy=timers.target
UNIT
systemctl daemon-reload && systemctl enable --now trainium-course-end.timer || poweroff
# 2. A note for whoever opens a session.
echo "trainium-course: this machine ends at $end; Python of the image: {{ python }}" >> /etc/motd
