# Runs a PostgreSQL server in a temporary folder until standard input is closed. Each input line is a command, which is
# answered with one line. $1 is the folder of PostgreSQL's programs, $2 the port, further arguments are settings of a
# server without durability.
set -u
bin=$1
port=$2
shift 2
umask 077
parent=${TMPDIR:-/tmp}
# Without durability in memory, if there is room: a database is 300 files, which every test creates and deletes.
if [ $# -gt 0 ] && [ "$(df -Pk /dev/shm | awk 'NR == 2 { print $4 }')" -gt 8000000 ] && [ -w /dev/shm ]; then
  parent=/dev/shm
fi 2>/dev/null
folder=$(mktemp -d "$parent/verbatim-postgres-XXXXXX") || exit 1
data=$folder/data
log=$folder/log
cd "$folder" || exit 1

stop_and_clean() {
  "$bin/pg_ctl" -D "$data" -m immediate stop >>"$log" 2>&1
  cd / && rm -rf "$folder"
}
trap stop_and_clean EXIT
trap 'exit 1' INT TERM HUP

start_server() {
  "$bin/pg_ctl" -D "$data" -w -t 60 -l "$log" start >>"$log" 2>&1
}

# The processes of a killed server end with a delay; a new server cannot start before.
start_with_retries() {
  for try in $(seq 100); do
    start_server && return
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
  start_server || { cat "$log" >&2; exit 1; }
echo "up $folder"

while read -r command; do
  case $command in
  start) start_with_retries ;;
  stop) "$bin/pg_ctl" -D "$data" -w -m fast stop >>"$log" 2>&1 ;;
  file\ *)
    file=$data/${command#* }
    : >"$file"
    while IFS= read -r line && [ "$line" != "END OF FILE" ]; do printf '%s\n' "$line" >>"$file"; done
    ;;
  set\ *) printf '%s\n' "${command#* }" >>"$data/postgresql.conf" ;;
  pause | resume)
    # Simulates a hung machine: connections stay open without responses. The postmaster is stopped first, so that no
    # child is started after the children are listed; one that ends before it is stopped is no failure.
    pid=$(head -n 1 "$data/postmaster.pid")
    [ "$command" = pause ] && signal=STOP || signal=CONT
    kill -$signal "$pid" 2>>"$log" && { kill -$signal $(ps -o pid= --ppid "$pid") 2>>"$log" || true; }
    ;;
  drop-everything) "$bin/pg_ctl" -D "$data" -w -m immediate stop >>"$log" 2>&1 ;;
  kill)
    # Kills all processes at once, as the OOM killer does. The postmaster is stopped before its children are listed: a
    # child started later would survive, and could wait without end for a lock of a killed one.
    pid=$(head -n 1 "$data/postmaster.pid")
    kill -STOP "$pid" 2>>"$log"
    kill -KILL "$pid" $(ps -o pid= --ppid "$pid") 2>>"$log"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
    ;;
  drop\ *) "$bin/psql" -q -h "$folder" -p "$port" -U verbatim -d postgres -c "DROP DATABASE ${command#* } WITH (FORCE)" 2>>"$log" ;;
  database\ *) "$bin/psql" -q -h "$folder" -p "$port" -U verbatim -d postgres -c "CREATE DATABASE ${command#* }" 2>>"$log" ;;
  *) false ;;
  esac && echo "done" || { tail -n 5 "$log" | tr '\n' ' '; echo; }
done
