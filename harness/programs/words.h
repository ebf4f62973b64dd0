// A case in words: what is out of the ordinary in it, and what it does.
#pragma once

#include <set>
#include <string>

#include "suites/conformance/case.h"

namespace zeroproof::harness {

using suites::Case;

// "stage 2 on 3 ranks, fp32; a [5], b [2, 3] frozen; buckets of 4 elements". Defaults go unsaid.
std::string set_up_in_words(const Case& c);
// "2 windows, reload on 1 rank, window"; a window being its micro-steps and the step.
std::string program_in_words(const Case& c);

// What of the case goes beyond one window of one parameter on one rank, in fp32: "clipping",
// "several ranks", "load". The stage is not among it.
std::set<std::string> features_of(const Case& c);

}  // namespace zeroproof::harness
