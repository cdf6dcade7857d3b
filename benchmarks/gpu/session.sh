#!/usr/bin/env bash
# What is to be run where there is a GPU: bash benchmarks/gpu/session.sh FOLDER STEP...
#
# Steps: tests, memcheck, racecheck, synccheck, tune, quick, ladder, others (the other scalar
# types), sparse (beside cuDSS, where CUDSS_LIBRARY names it), compare (the problems of the tables
# beside cuDSS, the most telling first, each row written when it is done). Each writes
# FOLDER/STEP.log and its results beside it; one that fails stops no other.
# Environment: PYTHON (python3), STEP_SECONDS (540), COMPARE_SECONDS (470), PROBLEMS (of compare).
set -u
folder=$1
shift
cd "$(dirname "$0")/../.." || exit 2
mkdir -p "$folder"
python=${PYTHON:-python3}
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
tests=("$python" -m pytest -q -p no:cacheprovider -k "not emulated" tests/gpu)
ladder=("$python" -m benchmarks.dense.ladder --output)
sparse=("$python" -m benchmarks.gpu.compare --append --output "$folder/gpu.jsonl")
problems="p3d:30 p2d:300 p3d:50 el27:30 cd3d:55 p3d:64 p3d:80 p2d:1000 p3d:100 p3d:126 p2d:2000"

for step in "$@"; do
    case $step in
    tests) command=("${tests[@]}") ;;
    memcheck | racecheck | synccheck)
        command=(compute-sanitizer --tool "$step" --show-backtrace no --error-exitcode 9)
        command+=("${tests[@]}" -x) ;;
    tune) command=("$python" -m frontal tune --seconds 200 -o "$folder/tuned.json") ;;
    quick) command=("${ladder[@]}" "$folder/quick.jsonl" --quick) ;;
    ladder) command=("${ladder[@]}" "$folder/gpu_dense.jsonl") ;;
    others) command=("${ladder[@]}" "$folder/others.jsonl" --quick --dtypes scz) ;;
    sparse) command=("${sparse[@]}") ;;
    compare)
        # words apart: a list of problems
        # shellcheck disable=SC2086
        command=("${sparse[@]}" --problems ${PROBLEMS:-$problems} --solvers frontal cudss
            --reps 20 --budget 0.5 --timeout 200 --total "${COMPARE_SECONDS:-470}") ;;
    *) echo "no step $step" && exit 2 ;;
    esac
    began=$SECONDS
    timeout "${STEP_SECONDS:-540}" "${command[@]}" >"$folder/$step.log" 2>&1
    echo "== $step: status $?, $((SECONDS - began)) s"
    tail -n 60 "$folder/$step.log"
done
