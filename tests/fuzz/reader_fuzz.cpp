// SPDX-License-Identifier: MIT
// A reader returns what a stream holds, however that comes in parts and fails in between, and loses
// nothing. Beside it a model does the same with the whole text at hand.
#include <algorithm>
#include <motet/motet.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "check.hpp"
#include "io/scripted_stream.hpp"

using fuzz::require;
using motet::reader;
using testing::scripted_stream;

namespace {

constexpr std::size_t longest = 200;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A reader, and what is left of the stream by the model.
class twin {
 public:
  twin(scripted_stream& stream, std::string_view text, std::size_t limit)
      : stream_(stream), reader_(stream, limit), rest_(text), limit_(limit) {}

  void act(FuzzedDataProvider& input) {
    try {
      switch (input.ConsumeIntegralInRange(0, 6)) {
        case 0:
          return line();
        case 1:
          return until(input.ConsumeBytesAsString(input.ConsumeIntegralInRange<std::size_t>(1, 3)));
        case 2:
          return exactly(input.ConsumeIntegralInRange<std::size_t>(0, longest));
        case 3:
          return peek(input.ConsumeIntegralInRange<std::size_t>(0, longest));
        case 4:
          return skip(input.ConsumeIntegralInRange<std::size_t>(0, longest));
        case 5:
          return read(input.ConsumeIntegralInRange<std::size_t>(1, longest));
        default:
          stream_.fail_next(std::errc::io_error);
          fails_ = true;
      }
    } catch (const std::system_error& error) {
      require(fails_ && error.code() == std::errc::io_error);
      fails_ = false;
    }
  }

 private:
  void take(std::string_view bytes, std::size_t size) {
    require(bytes == rest_.substr(0, bytes.size()));
    rest_.remove_prefix(size);
  }

  void line() {
    const std::size_t end = rest_.find('\n');
    try {
      const auto text = reader_.line();
      require(text.has_value() == !rest_.empty());
      if (!text) return;
      require(text->size() <= limit_);
      if (end == rest_.npos) {
        require(text->size() == rest_.size());
        return take(*text, text->size());
      }
      const bool two = end > 0 && rest_[end - 1] == '\r';
      require(text->size() == end - (two ? 1 : 0));
      take(*text, end + 1);
    } catch (const motet::limit_exceeded&) {
      const bool two = end != rest_.npos && end > 0 && rest_[end - 1] == '\r';
      require(std::min(end, rest_.size()) - (two ? 1 : 0) > limit_);
    }
  }

  void until(const std::string& delimiter) {
    if (delimiter.empty()) return;
    const std::size_t end = rest_.find(delimiter);
    try {
      const auto bytes = reader_.until(delimiter);
      require(bytes.has_value() == !rest_.empty());
      if (!bytes) return;
      require(bytes->size() == end && end <= limit_);
      take(*bytes, end + delimiter.size());
    } catch (const motet::limit_exceeded&) {
      require(std::min(end, rest_.size()) > limit_);
    } catch (const motet::unexpected_eof&) {
      require(end == rest_.npos && !rest_.empty());
    }
  }

  void exactly(std::size_t size) {
    try {
      const std::string_view bytes = text_of(reader_.exactly(size));
      require(bytes.size() == size);
      take(bytes, size);
    } catch (const motet::limit_exceeded&) {
      require(size > limit_);
    } catch (const motet::unexpected_eof&) {
      require(size > rest_.size());
    }
  }

  void peek(std::size_t size) {
    try {
      const std::string_view bytes = text_of(reader_.peek(size));
      require(bytes.size() >= std::min(size, rest_.size()));
      take(bytes, 0);
    } catch (const motet::limit_exceeded&) {
      require(size > limit_);
    }
  }

  /// A skip that fails has dropped what came before the failure, and no more than was asked for.
  void skip(std::size_t size) {
    try {
      reader_.skip(size);
      require(size <= rest_.size());
      rest_.remove_prefix(size);
    } catch (const motet::unexpected_eof&) {
      require(size > rest_.size());
      rest_ = {};
    } catch (const std::system_error&) {
      const std::string_view ahead = text_of(reader_.peek(0));
      for (std::size_t dropped = 0; dropped <= size; ++dropped) {
        if (rest_.size() - dropped == ahead.size() + stream_.left()) {
          rest_.remove_prefix(dropped);
          throw;
        }
      }
      require(false);
    }
  }

  void read(std::size_t size) {
    std::vector<std::byte> room(size);
    const std::size_t count = reader_.read(room);
    require(count <= size && (count == 0) == rest_.empty());
    take(text_of(std::span(room).first(count)), count);
  }

  scripted_stream& stream_;
  reader<scripted_stream> reader_;
  std::string_view rest_;
  const std::size_t limit_;
  bool fails_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  const auto limit = input.ConsumeIntegralInRange<std::size_t>(1, longest);
  std::vector<std::string> parts;
  std::string text;
  for (int i = input.ConsumeIntegralInRange(0, 8); i > 0; --i) {
    parts.push_back(input.ConsumeRandomLengthString(longest));
    text += parts.back();
  }
  motet::options settings;
  settings.backend = "sim";
  motet::run(settings, [&] {
    scripted_stream stream(parts);
    twin pair(stream, text, limit);
    while (input.remaining_bytes() > 0) pair.act(input);
  });
  return 0;
}
