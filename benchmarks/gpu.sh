#!/usr/bin/env bash
# Everything that wants a graphics card, in one go: ten minutes, one card, no network.
#
#   benchmarks/gpu.sh --prepare   where idviz is set up: writes the text and the tokenizers to benchmarks/local/gpu
#   benchmarks/gpu.sh             where the card is: needs that folder, python3 with torch, accelerate, tokenizers, pytest …
#   benchmarks/gpu.sh --cpu       the rehearsal: the same steps with the preset nano, a few minutes on two cores
#
# In turn: the device tests; a time-boxed training of the preset small with each mixer (bfloat16, the same number of steps
# for all); perplexity against context length; the learned half's speed table; what a token costs. A step that fails or
# runs out of its time is reported, and the next one starts. The results, JSON with the card's name, go to $OUT, or to
# benchmarks/local/gpu-out.
set -uo pipefail
cd "$(dirname "$0")/.."

TEXT=benchmarks/local/gpu
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo "$PWD/.venv/bin/python" || echo python3)}
OUT=${OUT:-benchmarks/local/gpu-out}
LIMIT=${LIMIT:-570} # seconds in all
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export PYTHONPATH="$PWD:$WORK/site${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 TQDM_MININTERVAL=15

# The commands say their version. Where idviz is not installed, only on the path, these two lines are its installation.
if ! "$PYTHON" -c 'from importlib.metadata import version; version("idviz")' 2>/dev/null; then
  info="$WORK/site/idviz-0.dist-info"
  mkdir -p "$info"
  number=$("$PYTHON" -c 'import idviz; print(idviz.__version__)') || exit 2
  printf 'Metadata-Version: 2.1\nName: idviz\nVersion: %s\n' "$number" >"$info/METADATA"
fi

device=cuda scale=small contexts=64,128,256,512,1024,1792,2048,4096,8192 targets=512 positions=64,1024,16384,65536 steps= patience=1
case "${1:-}" in
  --prepare) exec "$PYTHON" benchmarks/gpu.py prepare "$TEXT" ;;
  --cpu)
    device=cpu scale=nano contexts=16,32,64,128,224,256,512,1024 targets=64 positions=64,1024 steps=20
    LIMIT=3600 patience=10 # a rehearsal is about whether it runs; the cores may have other work
    export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
    ;;
  "") ;;
  *) echo "gpu.sh: --prepare, --cpu or nothing, not $1" >&2; exit 2 ;;
esac
if [ ! -f "$TEXT/$scale.json" ]; then
  echo "gpu.sh: $TEXT is missing; benchmarks/gpu.sh --prepare writes it where idviz is set up" >&2
  exit 2
fi
mkdir -p "$OUT"
failed=()

# step NAME SECONDS COMMAND…: within its own time and what is left of the whole; its output goes to the log as well
step() {
  local name=$1 most=$(($2 * patience)) left=$((LIMIT - SECONDS)) began=$SECONDS code
  shift 2
  ((left > 5)) || { echo "== $name: no time left"; failed+=("$name"); return 1; }
  echo "== $name"
  timeout -k 10 $((most < left ? most : left)) "$@" 2>&1
  code=$?
  echo "== $name: exit code $code after $((SECONDS - began)) s"
  ((code == 0)) || failed+=("$name")
  return $code
}
idviz=("$PYTHON" -m idviz)
models=("$WORK"/runs/{interdomain,s4d,softmax,linear}-0)

everything() {
  "$PYTHON" -c 'import torch; print("torch", torch.__version__, torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU")'
  IDVIZ_DEVICE=$device step tests 150 "$PYTHON" -m pytest -q -p no:cacheprovider tests/learned/test_device.py
  step plan 120 "$PYTHON" benchmarks/gpu.py plan "$TEXT" --scale $scale --device $device \
    --seconds 150 ${steps:+--steps $steps} --out "$WORK/$scale.toml" &&
    step training 260 "${idviz[@]}" ablate "$WORK/$scale.toml" --out "$WORK/runs" --device $device \
      --json "$OUT/$scale-mixers.json" &&
    step length 120 "${idviz[@]}" length "${models[@]}" --text "$TEXT/held-out" --contexts $contexts --targets $targets \
      --device $device --json "$OUT/$scale-length.json"
  step speed 150 bash -c '"$@" || [ $? -eq 1 ]' - "${idviz[@]}" bench --only learned --device $device \
    --json "$OUT/learned.json" # 1: a goal of the table is missed; it says which
  [ -d "$WORK/runs" ] && step cost 60 "${idviz[@]}" cost "${models[@]}" --positions $positions --device $device \
    --json "$OUT/$scale-cost.json"
  echo "== ${SECONDS} s in all; failed: ${failed[*]:-none}"
  ((${#failed[@]} == 0))
}
everything > >(tee "$OUT/log.txt") 2>&1
code=$?
wait # for tee
exit $code
