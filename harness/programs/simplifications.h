// What may be taken from a case, or made plainer in it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "suites/conformance/case.h"

namespace zeroproof::harness {

using suites::Case;

// A case while it is simplified. What goes is marked and stays in its place, so that edits of one
// case can be made in any order and together.
struct Draft {
    explicit Draft(Case original);

    Case c;
    std::vector<bool> no_action;
    std::vector<bool> no_parameter;
    std::vector<bool> no_unit;
};

struct Edit {
    std::string topic;  // of two with the same, only the first may be made
    std::function<void(Draft&)> make;
};

// The strongest of a topic first. None changes the stage.
std::vector<Edit> simplifications(const Case& c);

// What is marked is gone, and with it what refers to it. The case need not be legal.
Case finished(const Draft& draft);

// How much there is to read; every edit that is of use makes it smaller.
std::size_t complexity(const Case& c);

}  // namespace zeroproof::harness
