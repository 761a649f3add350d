# What ci/test, ci/demo and ci/bench share. Sourced, with $root set to the repository root.

# One job per processor, but no more than the memory allows (about 1.5 GB for a compiler).
job_count() {
  local processors kilobytes
  processors=$(nproc)
  kilobytes=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
  local by_memory=$((kilobytes / 1500000))
  if [ "$by_memory" -lt 1 ]; then by_memory=1; fi
  echo $((processors < by_memory ? processors : by_memory))
}

# The build folder of a preset, as in ci/presets.json.
build_folder() {
  if [ "$1" = release ]; then echo "$root/build"; else echo "$root/build-$1"; fi
}

# Uses ccache when it is there; its cache goes into the build folder when HOME cannot be written.
use_ccache() {
  local build=$1 cache=${CCACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/ccache}
  command -v ccache >/dev/null || return 0
  if ! { mkdir -p "$cache" && [ -w "$cache" ]; } 2>/dev/null; then cache=$build/.ccache; fi
  export CCACHE_DIR=$cache CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
}

# configure_and_build PRESET [TARGET...]
configure_and_build() {
  local preset=$1 build
  shift
  build=$(build_folder "$preset")
  use_ccache "$build"
  (cd "$root" && cmake --preset "$preset" -Wno-dev)
  cmake --build "$build" --parallel "$(job_count)" ${@:+--target "$@"}
}
