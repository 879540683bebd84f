# Keeps a PostgreSQL server in a temporary folder until its standard input ends, however that comes about, and does
# what the lines there ask for: each is answered with a line. $1 is the folder of the programs, $2 the port, the rest
# are settings.
set -u
bin=$1
port=$2
shift 2
umask 077
folder=$(mktemp -d "${TMPDIR:-/tmp}/verbatim-postgres-XXXXXX") || exit 1
data=$folder/data
log=$folder/log
cd "$folder" || exit 1

end() {
  "$bin/pg_ctl" -D "$data" -m immediate stop >>"$log" 2>&1
  cd / && rm -rf "$folder"
}
trap end EXIT
trap 'exit 1' INT TERM HUP

up() {
  "$bin/pg_ctl" -D "$data" -w -t 60 -l "$log" start >>"$log" 2>&1
}

# What was killed is gone a moment later, and no server starts before it is.
again() {
  for try in $(seq 100); do
    up && return
    tail -n 5 "$log" | grep -q 'pre-existing shared memory block' || return 1
    sleep 0.2
  done
  return 1
}

"$bin/initdb" -D "$data" -U verbatim -A trust -E UTF8 --locale=C --no-sync >>"$log" 2>&1 &&
  {
    printf '%s\n' "listen_addresses = '127.0.0.1'" "port = $port" "unix_socket_directories = '$folder'" \
      "max_connections = 400" "log_min_messages = fatal" "logging_collector = off"
    for setting in "$@"; do printf '%s\n' "$setting"; done
  } >>"$data/postgresql.conf" &&
  up || { cat "$log" >&2; exit 1; }
echo "up $folder"

while read -r order; do
  case $order in
  start) again ;;
  stop) "$bin/pg_ctl" -D "$data" -w -m fast stop >>"$log" 2>&1 ;;
  file\ *)
    file=$data/${order#* }
    : >"$file"
    while IFS= read -r line && [ "$line" != "END OF FILE" ]; do printf '%s\n' "$line" >>"$file"; done
    ;;
  set\ *) printf '%s\n' "${order#* }" >>"$data/postgresql.conf" ;;
  pause | resume)
    # Its processes stand still, as those of a machine do that hangs: connections stay open, and nobody answers.
    pid=$(head -n 1 "$data/postmaster.pid")
    [ "$order" = pause ] && signal=STOP || signal=CONT
    kill -$signal "$pid" $(ps -o pid= --ppid "$pid") 2>>"$log"
    ;;
  drop-everything) "$bin/pg_ctl" -D "$data" -w -m immediate stop >>"$log" 2>&1 ;;
  kill)
    # As the system does when memory runs out: all its processes at once, without a word. The first one stands still
    # before the others are listed: whoever it started after that would live on, and might wait for ever for a lock of
    # a dead one.
    pid=$(head -n 1 "$data/postmaster.pid")
    kill -STOP "$pid" 2>>"$log"
    kill -KILL "$pid" $(ps -o pid= --ppid "$pid") 2>>"$log"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
    ;;
  drop\ *) "$bin/psql" -q -h "$folder" -p "$port" -U verbatim -d postgres -c "DROP DATABASE ${order#* } WITH (FORCE)" 2>>"$log" ;;
  database\ *) "$bin/psql" -q -h "$folder" -p "$port" -U verbatim -d postgres -c "CREATE DATABASE ${order#* }" 2>>"$log" ;;
  *) false ;;
  esac && echo "done" || { tail -n 5 "$log" | tr '\n' ' '; echo; }
done
