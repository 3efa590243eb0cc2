#!/usr/bin/env bash
# Installs the library into the build folder, and builds and runs a project that finds it there.
# Usage: run.sh BUILD_FOLDER
set -euo pipefail
source=$(dirname "$(realpath "$0")")
work=$(realpath "$1")/consumer
rm -rf "$work"
cmake --install "$1" --prefix "$work/prefix" > /dev/null
cmake -G Ninja -S "$source" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" > /dev/null
cmake --build "$work/build" > /dev/null
"$work/build/consumer"
