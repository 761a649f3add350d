#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "backends/api/error.h"
#include "backends/api/suggest.h"
#include "cli/parse_number.h"

namespace ddproof {
namespace {

std::string with_dashes(std::string flag) {
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

// "rdzv-id" becomes "RDZV_ID".
std::string to_variable(const std::string& name) {
  std::string variable;
  for (const char c : name) {
    variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return variable;
}

// Shortest text that reads back as the same number.
template <class Number>
std::string show(Number number) {
  char text[64];
  return std::string(text, std::to_chars(text, text + sizeof text, number).ptr);
}

template <class Number>
CLI::Validator in_range(Number low, Number high) {
  const std::string kind = std::is_integral_v<Number> ? "a whole number" : "a number";
  const auto check = [=](const std::string& text) -> std::string {
    const auto number = parse_number<Number>(text);
    if (number && *number >= low && *number <= high) return "";
    return "\"" + text + "\" is not allowed; allowed: " + kind + " from " + show(low) + " to " +
           show(high);
  };
  return CLI::Validator(check, "");
}

CLI::Validator not_empty() {
  const auto check = [](const std::string& text) -> std::string {
    return text.empty() ? "\"\" is not allowed; allowed: a text that is not empty" : "";
  };
  return CLI::Validator(check, "");
}

}  // namespace

struct Arguments::Parser {
  Parser(const std::string& program, const std::string& description) : app(description, program) {}

  CLI::Option* find(const std::string& typed) { return app.get_option_no_throw(typed); }
  template <class Number>
  CLI::Option* number(const std::string& name, Number& target, Number low, Number high,
                      const std::string& help) {
    CLI::Option* option = app.add_option(name, target, help)->check(in_range(low, high));
    // Out of range it means "not given".
    return target >= low && target <= high ? option->capture_default_str() : option;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw ConfigError(what + " (see " + app.get_name() + " --help)");
  }
  [[noreturn]] void refuse_unknown(const std::string& flag) const;
  // Appends the flag at arguments[at] and its value to `words`; returns where the next one starts.
  std::size_t take_flag(const std::vector<std::string>& arguments, std::size_t at,
                        std::vector<std::string>& words);

  // Appends what variables say of flags that are not given.
  void take_variables(std::vector<std::string>& words);
  // Refuses with CLI11's text, which begins with the flag, and the variable that said it, if one
  // did.
  [[noreturn]] void refuse_value(const std::string& text) const;

  CLI::App app;
  std::set<const CLI::Option*> given;  // in this parse()
  std::string prefix;                  // of variables
  const Environment* environment = nullptr;
  std::map<std::string, std::string> variables;  // by flag, those taken in this parse()
  std::vector<std::string>* rest = nullptr;
};

void Arguments::Parser::refuse_unknown(const std::string& flag) const {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  refuse("unknown flag \"" + flag + "\"" + did_you_mean(with_dashes(flag), known));
}

std::size_t Arguments::Parser::take_flag(const std::vector<std::string>& arguments, std::size_t at,
                                         std::vector<std::string>& words) {
  const std::string& word = arguments[at++];
  const auto equals = word.find('=');
  const std::string flag = word.substr(0, equals);
  const CLI::Option* option = find(with_dashes(flag));
  if (option == nullptr) refuse_unknown(flag);
  const bool repeatable = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  if (!given.insert(option).second && !repeatable) refuse(flag + ": is given twice; give it once");
  words.push_back(with_dashes(flag));
  const bool takes_value = option->get_items_expected_max() > 0;
  if (equals != std::string::npos) {
    if (!takes_value) refuse(flag + ": takes no value, got \"" + word.substr(equals + 1) + "\"");
    words.push_back(word.substr(equals + 1));
  } else if (takes_value) {
    if (at == arguments.size()) refuse(flag + ": a value must follow");
    words.push_back(arguments[at++]);
  }
  return at;
}

void Arguments::Parser::take_variables(std::vector<std::string>& words) {
  variables.clear();
  if (environment == nullptr) return;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || option == app.get_help_ptr()) continue;
    const std::string flag = "--" + option->get_lnames().front();
    const std::string variable = prefix + to_variable(option->get_lnames().front());
    const std::optional<std::string> value = environment->get(variable);
    if (!value || given.contains(option)) continue;
    const bool takes_value = option->get_items_expected_max() > 0;
    if (!takes_value && *value != "0" && *value != "1") {
      refuse(flag + ": \"" + *value + "\" is not allowed; allowed: 0 or 1 (" + variable +
             " in the environment)");
    }
    if (!takes_value && *value == "0") continue;
    given.insert(option);
    variables[flag] = variable;
    words.push_back(flag);
    if (takes_value) words.push_back(*value);
  }
}

void Arguments::Parser::refuse_value(const std::string& text) const {
  const auto source = variables.find(text.substr(0, text.find(':')));
  refuse(source == variables.end() ? text : text + " (" + source->second + " in the environment)");
}

Arguments::Arguments(const std::string& program, const std::string& description)
    : parser_(std::make_unique<Parser>(program, description)) {
  parser_->app.get_formatter()->column_width(34);
}

Arguments::~Arguments() = default;

void Arguments::flag(const std::string& name, bool& target, const std::string& help) {
  parser_->app.add_flag(name, target, help);
}

void Arguments::text(const std::string& name, std::string& target, const std::string& help) {
  parser_->app.add_option(name, target, help)
      ->capture_default_str()
      ->type_name("TEXT")
      ->check(not_empty());
}

void Arguments::texts(const std::string& name, std::vector<std::string>& target,
                      const std::string& help) {
  parser_->app.add_option(name, target, help)
      ->type_name("TEXT")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->check(not_empty());
}

void Arguments::choice(const std::string& name, std::string& target,
                       const std::vector<std::string>& allowed, const std::string& help) {
  std::string list;
  for (const std::string& word : allowed) list += (list.empty() ? "" : "|") + word;
  const auto check = [allowed, list](const std::string& text) -> std::string {
    if (std::ranges::count(allowed, text) > 0) return "";
    return "\"" + text + "\" is not allowed; allowed: " + list;
  };
  parser_->app.add_option(name, target, help)
      ->capture_default_str()
      ->type_name(list)
      ->check(CLI::Validator(check, ""));
}

void Arguments::number(const std::string& name, int& target, int low, int high,
                       const std::string& help) {
  parser_->number(name, target, low, high, help)->type_name("N");
}

void Arguments::number(const std::string& name, std::int64_t& target, std::int64_t low,
                       std::int64_t high, const std::string& help) {
  parser_->number(name, target, low, high, help)->type_name("N");
}

void Arguments::number(const std::string& name, std::uint64_t& target, const std::string& help) {
  parser_->number(name, target, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(), help)
      ->type_name("N");
}

void Arguments::number(const std::string& name, double& target, double low, double high,
                       const std::string& help) {
  parser_->number(name, target, low, high, help)->type_name("X");
}

void Arguments::rest(const std::string& name, std::vector<std::string>& target,
                     const std::string& help) {
  parser_->rest = &target;
  parser_->app.add_option(name, target, help)->type_name("");
}

void Arguments::variables(const std::string& prefix, const Environment& environment) {
  parser_->prefix = prefix;
  parser_->environment = &environment;
}

bool Arguments::parse(const std::vector<std::string>& arguments, std::ostream& out) {
  parser_->given.clear();
  std::vector<std::string> flags;
  std::size_t at = 0;
  while (at < arguments.size()) {
    const std::string& word = arguments[at];
    if (word == "--") {
      ++at;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    at = parser_->take_flag(arguments, at, flags);
  }
  const std::vector<std::string> rest(arguments.begin() + static_cast<std::ptrdiff_t>(at),
                                      arguments.end());
  if (!rest.empty() && parser_->rest == nullptr) {
    parser_->refuse("unexpected word \"" + rest[0] + "\"");
  }
  parser_->take_variables(flags);
  std::reverse(flags.begin(), flags.end());  // as CLI11 takes a vector
  try {
    parser_->app.parse(flags);
  } catch (const CLI::CallForHelp&) {
    out << parser_->app.help();
    return false;
  } catch (const CLI::ParseError& error) {
    parser_->refuse_value(error.what());
  }
  if (parser_->rest != nullptr) *parser_->rest = rest;
  return true;
}

bool Arguments::given(const std::string& name) const {
  const CLI::Option* option = parser_->find(name);
  return option != nullptr && option->count() > 0;
}

void refuse_flags_among(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (!file.starts_with("--")) continue;
    throw ConfigError(file + " comes after " + files.front() +
                      ": flags come before the files (a file of that name is ./" + file + ")");
  }
}

}  // namespace ddproof
