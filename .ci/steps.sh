# What the programs of this folder share: steps that are shown and counted, from nothing, with an npm
# cache of their own. To be sourced by bash; `work` is a folder that ends with the program.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

passed=0
failed=0
work=$(mktemp -d) || exit 1
# Root's PostgreSQL runs as nobody: where it may not pass its database would lie elsewhere, and stay.
chmod 711 "$work"
trap 'rm -rf "$work"' EXIT
export npm_config_cache="$work/npm-cache"
export npm_config_update_notifier=false
# A database or settings that this shell has for an exchange are not for what is tried here.
settings='import("./bin/testing/environment.mjs").then((own) => console.log(...own.settingsIn(process.env)))'
unset NODE_ENV $(node -e "$settings")

# step NAME COMMAND...: runs it, shows it, counts it. A test runner's own last line
# "N passed, N failed" counts instead of the step.
step() {
  local name=$1
  shift
  echo "== $name"
  local log="$work/step.log" started=$SECONDS code=0
  "$@" 2>&1 | tee "$log"
  code=${PIPESTATUS[0]}
  local counts
  counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
  if [ -n "$counts" ]; then
    passed=$((passed + ${counts%% *}))
    counts=${counts#*, }
    failed=$((failed + ${counts%% *}))
    if [ "$code" -ne 0 ] && [ "${counts%% *}" -eq 0 ]; then failed=$((failed + 1)); fi
  elif [ "$code" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
  echo "== $name: exit $code after $((SECONDS - started)) s"
  return "$code"
}

# Installs everything anew; without it nothing else can be said.
install() {
  rm -rf node_modules dist
  step "install" npm ci --no-audit --no-fund || finish
}

# The last line counts; fails on any failure.
finish() {
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
  exit
}
