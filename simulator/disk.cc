#include "simulator/disk.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "simulator/random.h"

namespace ddproof::sim {
namespace {

// "/a/b": absolute, without ".", ".." and repeated slashes.
std::string normal(const std::string& path) {
  std::vector<std::string> names;
  std::istringstream parts(path);
  for (std::string name; std::getline(parts, name, '/');) {
    if (name.empty() || name == ".") continue;
    if (name != "..") {
      names.push_back(name);
    } else if (!names.empty()) {
      names.pop_back();
    }
  }
  std::string result;
  for (const std::string& name : names) result += "/" + name;
  return result.empty() ? "/" : result;
}

std::string parent_of(const std::string& normal_path) {
  const auto slash = normal_path.rfind('/');
  return slash == 0 ? "/" : normal_path.substr(0, slash);
}

[[noreturn]] void fail(const std::string& path, const char* call, const char* reason) {
  throw DiskError(path + ": " + call + ": " + reason);
}

void lose_unsynced(DiskFile& file, SplitMix64& random) {
  enum Rest { kNone, kAll, kFirst, kTorn, kCount };
  const std::size_t unsynced = file.bytes.size() - file.durable_bytes;
  const std::size_t whole = file.durable_bytes + below(random.next(), unsynced + 1);
  switch (static_cast<Rest>(below(random.next(), kCount))) {
    case kNone: file.bytes.resize(file.durable_bytes); break;
    case kFirst: file.bytes.resize(whole); break;
    case kTorn: std::fill(file.bytes.begin() + whole, file.bytes.end(), std::byte{0}); break;
    default: break;
  }
  file.durable_bytes = file.bytes.size();
  file.has_lost_pages = false;
}

}  // namespace

std::string Disk::existing_directory_of(const std::string& path, const char* call) const {
  const std::string place = normal(path);
  if (directories_.contains(place)) fail(path, call, "is a directory");
  if (!directories_.contains(parent_of(place))) fail(path, call, "no such directory");
  return place;
}

Disk::FilePtr Disk::open(const std::string& path) {
  const auto found = files_.find(existing_directory_of(path, "open"));
  if (found == files_.end()) fail(path, "open", "no such file");
  return found->second;
}

Disk::FilePtr Disk::create(const std::string& path) {
  return files_[existing_directory_of(path, "create")] = std::make_shared<DiskFile>();
}

bool Disk::exists(const std::string& path) const {
  const std::string place = normal(path);
  return files_.contains(place) || directories_.contains(place);
}

std::vector<std::string> Disk::list(const std::string& path) const {
  const std::string place = normal(path);
  if (!directories_.contains(place)) fail(path, "list", "no such directory");
  std::set<std::string> names;
  const auto add = [&](const std::string& entry) {
    if (entry != "/" && parent_of(entry) == place) names.insert(entry.substr(entry.rfind('/') + 1));
  };
  for (const auto& [entry, file] : files_) add(entry);
  for (const std::string& entry : directories_) add(entry);
  return {names.begin(), names.end()};
}

void Disk::make_directory(const std::string& path) {
  for (std::string place = normal(path); !directories_.contains(place); place = parent_of(place)) {
    if (files_.contains(place)) fail(path, "make_directory", "a file has that name");
  }
  for (std::string place = normal(path); directories_.insert(place).second;) {
    place = parent_of(place);
  }
}

void Disk::rename(const std::string& from, const std::string& to) {
  const auto found = files_.find(existing_directory_of(from, "rename"));
  if (found == files_.end()) fail(from, "rename", "no such file");
  const std::string place = existing_directory_of(to, "rename");
  FilePtr file = std::move(found->second);
  files_.erase(found);
  files_[place] = std::move(file);
}

void Disk::remove(const std::string& path) {
  const std::string place = normal(path);
  if (!directories_.contains(place)) {
    files_.erase(place);
    return;
  }
  if (!list(path).empty()) fail(path, "remove", "the directory is not empty");
  if (place != "/") directories_.erase(place);
}

void Disk::sync_directory(const std::string& path) {
  const std::string place = normal(path);
  if (!directories_.contains(place)) fail(path, "sync_directory", "no such directory");
  std::erase_if(durable_files_, [&](const auto& entry) { return parent_of(entry.first) == place; });
  for (const auto& [entry, file] : files_) {
    if (parent_of(entry) == place) durable_files_[entry] = file;
  }
}

void Disk::cut_power(std::uint64_t seed) {
  SplitMix64 random(seed);
  Entries survivors;
  for (const std::string& directory : directories_) {
    const Entries& names = below(random.next(), 2) == 0 ? durable_files_ : files_;
    for (const auto& [entry, file] : names) {
      if (parent_of(entry) == directory) survivors[entry] = file;
    }
  }
  std::set<const DiskFile*> seen;  // a file may have two names here
  for (const Entries* entries : {&files_, &durable_files_}) {
    for (const auto& [entry, file] : *entries) {
      if (seen.insert(file.get()).second) lose_unsynced(*file, random);
    }
  }
  files_ = std::move(survivors);
  durable_files_ = files_;
}

}  // namespace ddproof::sim
