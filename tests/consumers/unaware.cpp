// SPDX-License-Identifier: MIT
// A program that calls nothing of the libraries it is linked with; they stand before its libraries'
// calls.
int main() {}
