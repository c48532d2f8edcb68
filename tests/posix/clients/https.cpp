// SPDX-License-Identifier: MIT
// libcurl, over TLS.
#include <curl/curl.h>

#include <stdexcept>

#include "posix/clients/client.hpp"

namespace clients { namespace {

/// libcurl's own memory, from before the first thread until the end of the process.
struct global_state {
  global_state() { ::curl_global_init(CURL_GLOBAL_ALL); }
  global_state(const global_state&) = delete;
  global_state& operator=(const global_state&) = delete;
  ~global_state() { ::curl_global_cleanup(); }
};
const global_state initialized;

/// Its connection is made by a first request, to which the server answers at once.
class https_client final : public client {
 public:
  explicit https_client(const std::string& server) : server_(server), request_(::curl_easy_init()) {
    ::curl_easy_setopt(request_, CURLOPT_SSL_VERIFYPEER, 0L);
    ::curl_easy_setopt(request_, CURLOPT_SSL_VERIFYHOST, 0L);
    ::curl_easy_setopt(request_, CURLOPT_NOSIGNAL, 1L);
    ::curl_easy_setopt(request_, CURLOPT_WRITEFUNCTION, &ignore);
  }
  ~https_client() override { ::curl_easy_cleanup(request_); }
  void connect() override {
    prepare("/quick");
    if (!succeeded(::curl_easy_perform(request_))) throw std::runtime_error("curl_easy_perform");
  }
  bool call() override {
    prepare("/slow");
    return succeeded(::curl_easy_perform(request_));
  }

  void prepare(const char* path) {
    ::curl_easy_setopt(request_, CURLOPT_URL, (server_ + path).c_str());
  }
  bool succeeded(CURLcode code) const {
    long status = 0;
    ::curl_easy_getinfo(request_, CURLINFO_RESPONSE_CODE, &status);
    return code == CURLE_OK && status == 200;
  }
  CURL* request() const { return request_; }

 private:
  static std::size_t ignore(char*, std::size_t size, std::size_t count, void*) {
    return size * count;
  }

  const std::string server_;
  CURL* const request_;
};

/// A connection belongs to the handle that made it, so here each request makes another.
std::size_t call_all_by_multi(connections& all) {
  CURLM* const multi = ::curl_multi_init();
  for (const auto& each : all) {
    auto& one = static_cast<https_client&>(*each);
    one.prepare("/slow");
    ::curl_easy_setopt(one.request(), CURLOPT_PRIVATE, &one);
    ::curl_multi_add_handle(multi, one.request());
  }
  std::size_t successes = 0;
  for (int running = 1; running > 0;) {
    ::curl_multi_perform(multi, &running);
    int left = 0;
    while (const CURLMsg* const news = ::curl_multi_info_read(multi, &left)) {
      https_client* one = nullptr;
      ::curl_easy_getinfo(news->easy_handle, CURLINFO_PRIVATE, &one);
      successes += one->succeeded(news->data.result) ? 1 : 0;
      ::curl_multi_remove_handle(multi, one->request());
    }
    if (running > 0) ::curl_multi_poll(multi, nullptr, 0, 1'000, nullptr);
  }
  ::curl_multi_cleanup(multi);
  return successes;
}

const registered https("https", {[](const std::string& server) -> std::unique_ptr<client> {
                                   return std::make_unique<https_client>(server);
                                 },
                                 &call_all_by_multi});

}}  // namespace clients
