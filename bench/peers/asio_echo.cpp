// SPDX-License-Identifier: MIT
// The echo server of compare_echo.py with Asio: one thread, callbacks, no coroutine.
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <utility>

#include "../bench_args.hpp"

namespace {

using boost::asio::ip::tcp;

class session : public std::enable_shared_from_this<session> {
 public:
  explicit session(tcp::socket socket) : socket_(std::move(socket)) {}

  void read() {
    socket_.async_read_some(
        boost::asio::buffer(buffer_),
        [self = shared_from_this()](boost::system::error_code error, std::size_t size) {
          if (!error) self->write(size);
        });
  }

 private:
  void write(std::size_t size) {
    boost::asio::async_write(
        socket_, boost::asio::buffer(buffer_, size),
        [self = shared_from_this()](boost::system::error_code error, std::size_t) {
          if (!error) self->read();
        });
  }

  tcp::socket socket_;
  std::array<char, 16 * 1024> buffer_;
};

void accept_next(tcp::acceptor& from) {
  from.async_accept([&from](boost::system::error_code error, tcp::socket socket) {
    if (error) bench::fail("accept: " + error.message());
    std::make_shared<session>(std::move(socket))->read();
    accept_next(from);
  });
}

}  // namespace

int main(int argc, char** argv) {
  double port = 0;
  bench::parse_options(argc, argv, {{"--port", &port, 0, 65535}});
  bench::raise_file_limit();
  boost::asio::io_context context(1);  // one thread: it takes no locks
  tcp::acceptor listener(context, tcp::v4(),
                         bench::listen_on_loopback(static_cast<in_port_t>(port), SOCK_NONBLOCK));
  boost::asio::signal_set stop(context, SIGTERM);
  stop.async_wait([&](boost::system::error_code, int) { context.stop(); });
  accept_next(listener);
  context.run();
}
