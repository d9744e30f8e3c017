#!/bin/sh
# Sends samples of this host's NVIDIA GPUs to Tollgate, about once a second.
# Requires nvidia-smi, awk and curl. Settings are environment variables:
#
#   TOLLGATE_URL            the admin side of Tollgate, such as https://gate.example.com
#   TOLLGATE_KEY            an API key; it does not appear in the process list
#   TOLLGATE_INTERVAL       seconds between samples, 0.1 to 3600 (1)
#   TOLLGATE_GPU_ID_OFFSET  added to each GPU's number, so that hosts use different ids, 0 to 255 (0)
#   TOLLGATE_HOST           name of this host in the console (its host name)
#
#   TOLLGATE_URL=https://gate.example.com TOLLGATE_KEY=... sh push-gpu.sh
#
# Exit status: 0 after TERM, INT or HUP; 1 if a program is missing; 2 if a setting is missing or invalid.

set -u
umask 077

url=${TOLLGATE_URL:-}
interval=${TOLLGATE_INTERVAL:-1}
offset=${TOLLGATE_GPU_ID_OFFSET:-0}
host=${TOLLGATE_HOST:-$(uname -n)}
longest_delay=30

die() {
  printf 'push-gpu: %s\n' "$2" >&2
  exit "$1"
}

# The bounds are those of `tollgate push-gpu`. A value is not printed, because it may contain a secret or a line break.
refuse() {
  die 2 "$1: its value is not allowed; use $2"
}

is_url() {
  case $1 in
    *[[:space:][:cntrl:]]*) return 1 ;;
    [Hh][Tt][Tt][Pp]://* | [Hh][Tt][Tt][Pp][Ss]://*) authority=${1#*://} ;;
    *) return 1 ;;
  esac
  case ${authority%%[/?#]*} in '' | *@*) return 1 ;; esac
}

# In a subshell with a locale of its own: in others, letters beyond ASCII are visible characters too.
is_key() (
  LC_ALL=C
  case $1 in *[![:graph:]]*) exit 1 ;; esac
  [ ${#1} -le 512 ]
)

# `[` fails if a number has too many digits for it.
is_offset() {
  case $1 in *[!0-9]*) return 1 ;; esac
  [ "$1" -le 255 ] 2>/dev/null
}

is_interval() {
  case $1 in *[!0-9.]* | *.*.* | .* | *.) return 1 ;; esac
  whole=${1%%.*}
  fraction=${1#"$whole"}
  case $whole/$fraction in *[1-9]*/* | */.[1-9]*) ;; *) return 1 ;; esac
  case $fraction in
    *[1-9]*) [ "$whole" -lt 3600 ] ;;
    *) [ "$whole" -le 3600 ] ;;
  esac 2>/dev/null
}

[ -n "$url" ] || die 2 'TOLLGATE_URL is not set'
[ -n "${TOLLGATE_KEY:-}" ] || die 2 'TOLLGATE_KEY is not set'
is_url "$url" || refuse TOLLGATE_URL 'an http:// or https:// address without user and password'
is_key "$TOLLGATE_KEY" || refuse TOLLGATE_KEY '1 to 512 visible ASCII characters'
is_offset "$offset" || refuse TOLLGATE_GPU_ID_OFFSET 'a whole number from 0 to 255'
is_interval "$interval" || refuse TOLLGATE_INTERVAL 'a number from 0.1 to 3600'
for program in nvidia-smi awk curl; do
  command -v "$program" >/dev/null 2>&1 || die 1 "$program is not on the PATH"
done

url=${url%/}
case $url in */api/gpu-stats) ;; *) url=$url/api/gpu-stats ;; esac

# curl's configuration format, with " and \ escaped. It is passed on standard input.
credentials=$(TOLLGATE_KEY=$TOLLGATE_KEY awk 'BEGIN {
  key = ENVIRON["TOLLGATE_KEY"]
  for (i = 1; i <= length(key); i++) {
    c = substr(key, i, 1)
    out = out (c == "\"" || c == "\\" ? "\\" : "") c
  }
  printf "header = \"Authorization: Bearer %s\"\n", out
}')
unset TOLLGATE_KEY

folder=$(mktemp -d "${TMPDIR:-/tmp}/push-gpu.XXXXXX") || die 1 'cannot create a temporary folder'

# A shell runs traps only between foreground commands, so long commands run in the background.
running=
stop() {
  trap '' TERM INT HUP
  # Between two commands $! has exited, and its process id may belong to another program.
  [ -z "$running" ] || kill -9 "$!" 2>/dev/null
  rm -rf "$folder"
  exit 0
}
trap stop TERM INT HUP

pause() {
  running=1
  sleep "$1" &
  wait "$!"
  running=
}

# Logs a state only if it differs from the previous one.
previous_state=
log_on_change() {
  [ "$1" = "$previous_state" ] || printf 'push-gpu: %s\n' "$1" >&2
  previous_state=$1
}

read_gpus() {
  running=1
  LC_ALL=C nvidia-smi \
    --query-gpu=index,name,power.draw,temperature.gpu,memory.used,memory.total,utilization.gpu \
    --format=csv,noheader,nounits >"$folder/csv" 2>&1 &
  wait "$!"
  running=
}

# Columns are counted from both ends, because a name may hold commas. A cell that is no number ([N/A]) is left out; a unit
# behind one is taken off.
write_body() {
  LC_ALL=C TOLLGATE_HOST=$host awk -v offset="$offset" '
    function text(s,    i, c, out) {
      out = ""
      for (i = 1; i <= length(s); i++) {
        c = substr(s, i, 1)
        if (c == "\"" || c == "\\") out = out "\\" c
        else if (c >= " " && c <= "~") out = out c
        else out = out "?"
      }
      return out
    }
    function trimmed(s) {
      gsub(/^[ \t]+|[ \t\r]+$/, "", s)
      return s
    }
    function member(field, value, most, whole) {
      value = trimmed(value)
      sub(/ *[A-Za-z%]+$/, "", value)
      if (value !~ /^[0-9]+(\.[0-9]+)?$/ || value + 0 > most) return ""
      return ",\"" field "\":" (whole ? sprintf("%.0f", value) : value)
    }
    BEGIN {
      host = text(substr(trimmed(ENVIRON["TOLLGATE_HOST"]), 1, 64))
      head = "{" (host == "" ? "" : "\"host\":\"" host "\",") "\"gpus\":["
    }
    {
      n = split($0, cell, ",")
      index_text = trimmed(cell[1])
      if (n < 7 || index_text !~ /^[0-9]+$/ || index_text + offset > 255) next
      name = cell[2]
      for (i = 3; i <= n - 5; i++) name = name "," cell[i]
      name = substr(trimmed(name), 1, 64)
      printf "%s{\"gpu_id\":%d,\"name\":\"%s\"", (count++ ? "," : head), index_text + offset, text(name)
      printf "%s", member("power_draw_w", cell[n - 4], 10000, 0)
      printf "%s", member("temp_c", cell[n - 3], 150, 1)
      printf "%s", member("memory_used_mb", cell[n - 2], 9007199254740991, 1)
      printf "%s", member("memory_total_mb", cell[n - 1], 9007199254740991, 1)
      printf "%s}", member("utilization_pct", cell[n], 100, 1)
    }
    END { if (count) print "]}"; else exit 1 }
  ' "$folder/csv" >"$folder/body"
}

post() {
  : >"$folder/response"
  running=1
  curl --silent --config - --request POST --header 'Content-Type: application/json' --data-binary "@$folder/body" \
    --connect-timeout 5 --max-time 10 --output "$folder/response" --write-out '%{http_code}' \
    "$url" >"$folder/status" <<EOF &
$credentials
EOF
  wait "$!"
  curl_status=$?
  running=
  status=
  read -r status <"$folder/status"
}

# Sets failed to 1 and logs the reason, unless the server accepted the samples.
check_response() {
  failed=1
  case $curl_status in
    0) ;;
    6) log_on_change "$url: unknown host name" && return ;;
    7) log_on_change "$url: connection refused, or host unreachable" && return ;;
    28) log_on_change "$url: no response in time" && return ;;
    35) log_on_change "$url: the server does not speak TLS" && return ;;
    52 | 56) log_on_change "$url: the server closed the connection; does it speak HTTPS?" && return ;;
    51) log_on_change "$url: the TLS certificate is for another host name" && return ;;
    60) log_on_change "$url: the TLS certificate is not trusted, expired, or for another host name" && return ;;
    77) log_on_change "$url: this host's file of trusted authorities cannot be read" && return ;;
    *) log_on_change "$url: not reachable (curl status $curl_status)" && return ;;
  esac
  case $status in
    200)
      if grep -q '"ok" *: *true' "$folder/response"; then
        failed=
        log_on_change "sending samples to $url"
      else
        log_on_change "$url: wrong address: the server there is not Tollgate"
      fi
      ;;
    401)
      delay=$longest_delay
      log_on_change "$url: the API key is unknown, inactive or expired (401)"
      ;;
    403)
      delay=$longest_delay
      log_on_change "$url: the API key may not post GPU samples, or a server in between refuses it (403)"
      ;;
    3?? | 404 | 405) log_on_change "$url: wrong address ($status)" ;;
    *) log_on_change "$url: the server responded with status $status" ;;
  esac
}

delay=$interval
while :; do
  failed=1
  read_gpus
  if write_body; then
    post
    check_response
  else
    message=
    read -r message <"$folder/csv"
    log_on_change "nvidia-smi gave no readings: ${message:-it printed nothing}"
  fi
  if [ -z "$failed" ]; then
    delay=$interval
    pause "$interval"
  else
    pause "$delay"
    delay=$(awk -v delay="$delay" -v most="$longest_delay" 'BEGIN { delay *= 2; print(delay < most ? delay : most) }')
  fi
done
