// A subcommand's flags: what they are called, where their values go, and the help text. Wraps
// CLI11, which only arguments.cc includes.
//
// Rules: dashes and underscores in a flag are the same; "--flag value" and "--flag=value" are the
// same; an unknown flag, a missing or bad value or a stray word is ConfigError naming it, what is
// allowed, and the nearest flag; so is a flag given twice, unless it is declared by texts(). What a
// target holds before parse() is the default that help shows, unless it is a number out of range.
// Threads: one.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "backends/api/runtime.h"

namespace ddproof {

class Arguments {
 public:
  // `program` as typed: "ddproof train".
  Arguments(const std::string& program, const std::string& description);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // `name` is "--epochs" or "-e,--epochs". Targets must outlive parse().
  void flag(const std::string& name, bool& target, const std::string& help);
  // An empty text is refused.
  void text(const std::string& name, std::string& target, const std::string& help);
  // May be given several times.
  void texts(const std::string& name, std::vector<std::string>& target, const std::string& help);
  void choice(const std::string& name, std::string& target, const std::vector<std::string>& allowed,
              const std::string& help);
  // Whole numbers and decimal numbers within [low, high].
  void number(const std::string& name, int& target, int low, int high, const std::string& help);
  void number(const std::string& name, std::int64_t& target, std::int64_t low, std::int64_t high,
              const std::string& help);
  void number(const std::string& name, std::uint64_t& target, const std::string& help);
  void number(const std::string& name, double& target, double low, double high,
              const std::string& help);
  // The first word that belongs to no flag, or that follows "--", and all words after it, as typed.
  void rest(const std::string& name, std::vector<std::string>& target, const std::string& help);

  // From now on a flag that is not given takes the value of the variable of its name, where that is
  // set: with the prefix "PET_", --rdzv-id that of PET_RDZV_ID. A flag without a value is 1 or 0.
  // `environment` must outlive parse().
  void variables(const std::string& prefix, const Environment& environment);

  // Sets the targets. Returns false when help was asked for; it is then printed to `out`.
  bool parse(const std::vector<std::string>& arguments, std::ostream& out);
  // Whether the flag was given in the last parse(), by a word or a variable.
  bool given(const std::string& name) const;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

// Throws ConfigError for a word of Arguments::rest() that looks like a flag: for commands whose
// rest is names of files.
void refuse_flags_among(const std::vector<std::string>& files);

}  // namespace ddproof
