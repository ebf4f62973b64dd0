// Running commands on a node of a lab.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace zeroproof::harness {

// Puts this process into the network namespace `name_space`, and into a namespace of host names of
// its own, where the machine is called `host`. Throws std::system_error.
void enter_node(const std::string& name_space, const std::string& host);

// What mpirun runs in place of a remote shell: the words, joined by spaces, are what a shell on the
// node of `address` runs, in the lab that has `folder`. Returns only by throwing
// std::runtime_error.
[[noreturn]] void run_node_shell(const std::filesystem::path& folder, const std::string& address,
                                 const std::vector<std::string>& words);

}  // namespace zeroproof::harness
