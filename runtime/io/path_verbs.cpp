// SPDX-License-Identifier: MIT
// See motet/io/file_verbs.hpp: the calls on the names of files.
#include <fcntl.h>

#include <cerrno>
#include <cstdint>
#include <motet/base/errors.hpp>
#include <motet/io/fd.hpp>
#include <motet/io/file_verbs.hpp>
#include <string>

#include "core/thread_state.hpp"
#include "io/io.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail { namespace {

/// `number` is the mode, or the mask, that the verb has.
operation on_path(verb kind, int directory, const char* path, int flags, unsigned number = 0) {
  operation op;
  op.kind = kind;
  op.fd = directory;
  op.path = path;
  op.flags = flags;
  op.length = number;
  return op;
}

operation inquiry(int directory, const char* path, int flags, unsigned mask,
                  struct ::statx& status) {
  operation op = on_path(verb::statx, directory, path, flags, mask);
  op.status = &status;
  return op;
}

/// An operation has one descriptor, of which a fiber that closes it knows. So the other directory
/// is a copy, which no other fiber can close.
class renaming {
 public:
  renaming(int directory, const char* path, int new_directory, const char* new_path,
           unsigned flags) noexcept
      : op(on_path(verb::renameat, directory, path, static_cast<int>(flags),
                   static_cast<unsigned>(new_directory))) {
    op.new_path = new_path;
    if (new_directory == AT_FDCWD || new_directory == directory) return;
    copy_ = fd(::fcntl(new_directory, F_DUPFD_CLOEXEC, 0));
    if (!copy_) refusal_ = -errno;
    op.length = static_cast<unsigned>(copy_.get());
  }

  /// Returns: 0, or minus an errno value if the directory is not open, or cannot be duplicated.
  std::int32_t refusal() const noexcept { return refusal_; }

  operation op;

 private:
  fd copy_;
  std::int32_t refusal_ = 0;
};

/// As check_result(), but the error names the path.
std::size_t check_path_result(std::int32_t result, const operation& op, const char* call) {
  if (result >= 0 || result == -ECANCELED) return check_result(result, call, op.fd);
  const std::string path = op.path == nullptr ? "no path" : "\"" + std::string(op.path) + "\"";
  throw std::system_error(-result, std::system_category(), std::string(call) + " of " + path);
}

/// A null path is refused here: the calls of the C library are declared never to get one.
std::int32_t perform_path_now(operation& op, const char* call) {
  return op.path == nullptr ? -EFAULT : perform_now(op, call);
}

std::size_t perform_on_path(operation& op, const char* call) {
  here().deliver();
  return check_path_result(perform_path_now(op, call), op, call);
}

std::size_t perform_on_path_quietly(operation& op, const char* call,
                                    std::error_code& error) noexcept {
  return quietly(error, [&] { return perform_path_now(op, call); });
}

std::int32_t perform(renaming& call) {
  if (call.refusal() != 0) return call.refusal();
  return call.op.new_path == nullptr ? -EFAULT : perform_path_now(call.op, "renameat");
}

}}  // namespace detail

namespace io {

using detail::perform_on_path;
using detail::perform_on_path_quietly;

int openat(int directory, const char* path, int flags, mode_t mode) {
  operation op = detail::on_path(verb::openat, directory, path, flags | O_CLOEXEC, mode);
  return static_cast<int>(perform_on_path(op, "openat"));
}

int openat(int directory, const char* path, int flags, mode_t mode,
           std::error_code& error) noexcept {
  operation op = detail::on_path(verb::openat, directory, path, flags | O_CLOEXEC, mode);
  const auto result = static_cast<int>(perform_on_path_quietly(op, "openat", error));
  return error ? -1 : result;
}

void statx(int directory, const char* path, int flags, unsigned mask, struct ::statx& status) {
  operation op = detail::inquiry(directory, path, flags, mask, status);
  perform_on_path(op, "statx");
}

void statx(int directory, const char* path, int flags, unsigned mask, struct ::statx& status,
           std::error_code& error) noexcept {
  operation op = detail::inquiry(directory, path, flags, mask, status);
  perform_on_path_quietly(op, "statx", error);
}

void renameat(int directory, const char* path, int new_directory, const char* new_path,
              unsigned flags) {
  detail::here().deliver();
  detail::renaming call(directory, path, new_directory, new_path, flags);
  detail::check_path_result(detail::perform(call), call.op, "renameat");
}

void renameat(int directory, const char* path, int new_directory, const char* new_path,
              unsigned flags, std::error_code& error) noexcept {
  detail::renaming call(directory, path, new_directory, new_path, flags);
  detail::quietly(error, [&] { return detail::perform(call); });
}

void unlinkat(int directory, const char* path, int flags) {
  operation op = detail::on_path(verb::unlinkat, directory, path, flags);
  perform_on_path(op, "unlinkat");
}

void unlinkat(int directory, const char* path, int flags, std::error_code& error) noexcept {
  operation op = detail::on_path(verb::unlinkat, directory, path, flags);
  perform_on_path_quietly(op, "unlinkat", error);
}

void mkdirat(int directory, const char* path, mode_t mode) {
  operation op = detail::on_path(verb::mkdirat, directory, path, 0, mode);
  perform_on_path(op, "mkdirat");
}

void mkdirat(int directory, const char* path, mode_t mode, std::error_code& error) noexcept {
  operation op = detail::on_path(verb::mkdirat, directory, path, 0, mode);
  perform_on_path_quietly(op, "mkdirat", error);
}

}  // namespace io

}}  // namespace motet::MOTET_ABI
