// SPDX-License-Identifier: MIT
// Look-ups of users, groups, services and hosts. They block the thread: the C library holds locks
// while a module of the name service, perhaps a library with blocking calls of its own, answers.
// Source: nsswitch.conf(5).
#include <grp.h>
#include <netdb.h>
#include <pwd.h>

#include <cstddef>

#include "posix/caller.hpp"
#include "posix/functions.hpp"

using namespace motet::detail;

extern "C" {

passwd* getpwnam(const char* name) {
  const c_library_section section;
  return libc.getpwnam(name);
}

passwd* getpwuid(uid_t id) {
  const c_library_section section;
  return libc.getpwuid(id);
}

int getpwnam_r(const char* name, passwd* entry, char* buffer, std::size_t size, passwd** result) {
  const c_library_section section;
  return libc.getpwnam_r(name, entry, buffer, size, result);
}

int getpwuid_r(uid_t id, passwd* entry, char* buffer, std::size_t size, passwd** result) {
  const c_library_section section;
  return libc.getpwuid_r(id, entry, buffer, size, result);
}

group* getgrnam(const char* name) {
  const c_library_section section;
  return libc.getgrnam(name);
}

group* getgrgid(gid_t id) {
  const c_library_section section;
  return libc.getgrgid(id);
}

int getgrnam_r(const char* name, group* entry, char* buffer, std::size_t size, group** result) {
  const c_library_section section;
  return libc.getgrnam_r(name, entry, buffer, size, result);
}

int getgrgid_r(gid_t id, group* entry, char* buffer, std::size_t size, group** result) {
  const c_library_section section;
  return libc.getgrgid_r(id, entry, buffer, size, result);
}

int getgrouplist(const char* user, gid_t first, gid_t* groups, int* count) {
  const c_library_section section;
  return libc.getgrouplist(user, first, groups, count);
}

int initgroups(const char* user, gid_t first) {
  const c_library_section section;
  return libc.initgroups(user, first);
}

servent* getservbyname(const char* name, const char* protocol) {
  const c_library_section section;
  return libc.getservbyname(name, protocol);
}

servent* getservbyport(int port, const char* protocol) {
  const c_library_section section;
  return libc.getservbyport(port, protocol);
}

int getservbyname_r(const char* name, const char* protocol, servent* entry, char* buffer,
                    std::size_t size, servent** result) {
  const c_library_section section;
  return libc.getservbyname_r(name, protocol, entry, buffer, size, result);
}

int getservbyport_r(int port, const char* protocol, servent* entry, char* buffer, std::size_t size,
                    servent** result) {
  const c_library_section section;
  return libc.getservbyport_r(port, protocol, entry, buffer, size, result);
}

hostent* gethostbyname(const char* name) {
  const c_library_section section;
  return libc.gethostbyname(name);
}

hostent* gethostbyname2(const char* name, int family) {
  const c_library_section section;
  return libc.gethostbyname2(name, family);
}

hostent* gethostbyaddr(const void* address, socklen_t length, int family) {
  const c_library_section section;
  return libc.gethostbyaddr(address, length, family);
}

int gethostbyname_r(const char* name, hostent* entry, char* buffer, std::size_t size,
                    hostent** result, int* error) {
  const c_library_section section;
  return libc.gethostbyname_r(name, entry, buffer, size, result, error);
}

int gethostbyname2_r(const char* name, int family, hostent* entry, char* buffer, std::size_t size,
                     hostent** result, int* error) {
  const c_library_section section;
  return libc.gethostbyname2_r(name, family, entry, buffer, size, result, error);
}

int gethostbyaddr_r(const void* address, socklen_t length, int family, hostent* entry, char* buffer,
                    std::size_t size, hostent** result, int* error) {
  const c_library_section section;
  return libc.gethostbyaddr_r(address, length, family, entry, buffer, size, result, error);
}

}  // extern "C"
