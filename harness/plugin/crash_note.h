// Last words of the process in which an engine crashes.
#pragma once

namespace zeroproof::harness {

// From here on a fatal signal first says on standard error in which function of an engine it came.
// A handler that is there already, such as a sanitizer's, stays.
void note_crashes();

// While one lives, this thread is in that function of the engine. The name is a literal.
class InFunction {
  public:
    InFunction(const char* function, int rank);
    InFunction(const InFunction&) = delete;
    InFunction& operator=(const InFunction&) = delete;
    ~InFunction();
};

}  // namespace zeroproof::harness
