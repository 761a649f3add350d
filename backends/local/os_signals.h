// Signals that a program wants as errors instead.
#pragma once

namespace ddproof {

// A write past the limit on file sizes (ulimit -f) then fails, as on a full disk, instead of
// ending the process without a word. Programs that this one starts are as before. Call it in
// main().
void make_file_size_limit_an_error();

}  // namespace ddproof
