#!/bin/sh
# Sends the NVIDIA GPUs of this host to Tollgate, about once a second.
# Needs nvidia-smi, awk and curl. Settings come from the environment:
#
#   TOLLGATE_URL            the admin side of Tollgate, such as https://gate.example.com
#   TOLLGATE_KEY            an API key; it is kept off the command lines that ps shows
#   TOLLGATE_INTERVAL       seconds between samples (1)
#   TOLLGATE_GPU_ID_OFFSET  added to each GPU's number, so that several hosts share the ids (0)
#
#   TOLLGATE_URL=https://gate.example.com TOLLGATE_KEY=... sh push-gpu.sh
#
# Ends with status 0 on TERM, INT or HUP, with 2 where a setting is missing, with 1 where a program is.

set -u
umask 077

url=${TOLLGATE_URL:-}
interval=${TOLLGATE_INTERVAL:-1}
offset=${TOLLGATE_GPU_ID_OFFSET:-0}
longest_delay=30

die() {
  printf 'push-gpu: %s\n' "$2" >&2
  exit "$1"
}

[ -n "$url" ] || die 2 'TOLLGATE_URL is not set'
[ -n "${TOLLGATE_KEY:-}" ] || die 2 'TOLLGATE_KEY is not set'
case $offset in *[!0-9]* | '') die 2 'TOLLGATE_GPU_ID_OFFSET is not a whole number' ;; esac
case $interval in *[!0-9.]* | '' | .) die 2 'TOLLGATE_INTERVAL is not a number of seconds' ;; esac
for program in nvidia-smi awk curl; do
  command -v "$program" >/dev/null 2>&1 || die 1 "$program is not on the PATH"
done

url=${url%/}
case $url in */api/gpu-stats) ;; *) url=$url/api/gpu-stats ;; esac

# curl's own configuration format, in which " and \ are escaped. It travels on standard input.
credentials=$(TOLLGATE_KEY=$TOLLGATE_KEY awk 'BEGIN {
  key = ENVIRON["TOLLGATE_KEY"]
  for (i = 1; i <= length(key); i++) {
    c = substr(key, i, 1)
    out = out (c == "\"" || c == "\\" ? "\\" : "") c
  }
  printf "header = \"Authorization: Bearer %s\"\n", out
}')
unset TOLLGATE_KEY

folder=$(mktemp -d "${TMPDIR:-/tmp}/push-gpu.XXXXXX") || die 1 'no temporary folder could be made'

# A shell runs its traps only between foreground commands, so whatever can last is run in the background and waited for.
running=
stop() {
  trap '' TERM INT HUP
  # Between two commands $! is one that has ended, and its number may be another program's by now.
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

# One line per change of state, not one per failure.
said=
say() {
  [ "$1" = "$said" ] || printf 'push-gpu: %s\n' "$1" >&2
  said=$1
}

read_gpus() {
  running=1
  LC_ALL=C nvidia-smi \
    --query-gpu=index,name,power.draw,temperature.gpu,memory.used,memory.total,utilization.gpu \
    --format=csv,noheader,nounits >"$folder/csv" 2>&1 &
  wait "$!"
  running=
}

# Columns are counted from both ends, since a name may hold commas. What is no number ([N/A], ERR!) is left out.
write_body() {
  LC_ALL=C awk -v offset="$offset" '
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
      if (value !~ /^[0-9]+(\.[0-9]+)?$/ || value + 0 > most) return ""
      return ",\"" field "\":" (whole ? sprintf("%.0f", value) : value)
    }
    {
      n = split($0, cell, ",")
      index_text = trimmed(cell[1])
      if (n < 7 || index_text !~ /^[0-9]+$/ || index_text + offset > 255) next
      name = cell[2]
      for (i = 3; i <= n - 5; i++) name = name "," cell[i]
      name = substr(trimmed(name), 1, 64)
      printf "%s{\"gpu_id\":%d,\"name\":\"%s\"", (count++ ? "," : "{\"gpus\":["), index_text + offset, text(name)
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
  : >"$folder/answer"
  running=1
  curl --silent --config - --request POST --header 'Content-Type: application/json' --data-binary "@$folder/body" \
    --connect-timeout 5 --max-time 10 --output "$folder/answer" --write-out '%{http_code}' \
    "$url" >"$folder/status" <<EOF &
$credentials
EOF
  wait "$!"
  curl_status=$?
  running=
  status=
  read -r status <"$folder/status"
}

# Sets failed to 1 and says why, unless the samples were taken.
judge() {
  failed=1
  case $curl_status in
    0) ;;
    6) say "$url: its host name is not known" && return ;;
    7) say "$url: nothing listens there" && return ;;
    28) say "$url: no answer in time" && return ;;
    35 | 51 | 58 | 60 | 77 | 83) say "$url: its TLS certificate is not trusted" && return ;;
    *) say "$url is not reachable (curl ended with status $curl_status)" && return ;;
  esac
  case $status in
    200)
      if grep -q '"ok" *: *true' "$folder/answer"; then
        failed=
        say "sending samples to $url"
      else
        say "$url is the wrong address: what answers there is not Tollgate"
      fi
      ;;
    401 | 403)
      delay=$longest_delay
      say "$url refuses the key ($status): it is unknown, or not active"
      ;;
    3?? | 404 | 405) say "$url is the wrong address ($status)" ;;
    *) say "$url answered $status" ;;
  esac
}

delay=$interval
while :; do
  failed=1
  read_gpus
  if write_body; then
    post
    judge
  else
    complaint=
    read -r complaint <"$folder/csv"
    say "nvidia-smi gives no readings: ${complaint:-it printed nothing}"
  fi
  if [ -z "$failed" ]; then
    delay=$interval
    pause "$interval"
  else
    pause "$delay"
    delay=$(awk -v delay="$delay" -v most="$longest_delay" 'BEGIN { delay *= 2; print(delay < most ? delay : most) }')
  fi
done
