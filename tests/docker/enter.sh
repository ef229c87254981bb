#!/bin/sh
# Run a command in the image's root as a container would: user 10001, root read-only, no capability
# and no way to gain one, own processes and host name; /tmp and /data alone can be written.
#   tests/docker/enter.sh ROOT DATA HOSTNAME COMMAND...    with the command's whole environment set
# The network is this machine's, so that a test can lend PostgreSQL and Redis.
set -eu
exec unshare --mount --pid --uts --ipc --fork --kill-child=KILL sh -euc '
  root=$1 data=$2
  hostname "$3"
  shift 3
  mount --make-rprivate /
  mount --bind "$root" "$root"
  mount -o remount,bind,ro,nosuid "$root"
  mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
  mount -t tmpfs -o nosuid,nodev,noexec,mode=1777 tmpfs "$root/tmp"
  mount -t tmpfs -o nosuid,mode=755 tmpfs "$root/dev"
  mkdir -m 1777 "$root/dev/shm"
  for name in null zero full random urandom; do
    touch "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
  done
  mount --bind "$data" "$root/data"
  exec chroot "$root" setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs \
    --inh-caps=-all --bounding-set=-all -- sh -c "cd /app && exec \"\$@\"" enter "$@"
' enter "$@"
