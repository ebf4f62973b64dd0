// What a record holds beside passes and unexpected failures.
#pragma once

#include <string>
#include <vector>

#include "harness/record.h"

namespace zeroproof::harness {

struct Item {
    std::string name;  // empty if the text says all
    std::string text;
};

struct Section {
    std::string title;
    std::vector<Item> items;  // never empty, printable
};

// Errors, runs without an end, what was not exercised, not observable, rejected or not declared,
// expected failures and broken expectations: those that there are.
std::vector<Section> remarks_on(const Record& record);

}  // namespace zeroproof::harness
