#include "harness/plugin/crash_note.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <initializer_list>

namespace zeroproof::harness {

namespace {

thread_local const char* volatile current_function = nullptr;
thread_local volatile int current_rank = 0;

// Functions that a signal handler may call, and no others.
void say(const char* text) {
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

void on_fatal_signal(int number) {
    const char* function = current_function;
    const int rank = current_rank;
    const char digits[] = {static_cast<char>('0' + rank / 10 % 10),
                           static_cast<char>('0' + rank % 10), '\0'};
    if (function == nullptr) {
        say("in no function of the engine that the host has called\n");
    } else {
        say("in the engine's ");
        say(function);
        say(" of rank ");
        say(rank < 10 ? digits + 1 : digits);
        say("\n");
    }
    raise(number);  // by default again, since SA_RESETHAND
}

}  // namespace

void note_crashes() {
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
        struct sigaction present {};
        if (sigaction(number, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) continue;
        struct sigaction action {};
        action.sa_handler = on_fatal_signal;
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        sigemptyset(&action.sa_mask);
        sigaction(number, &action, nullptr);
    }
}

InFunction::InFunction(const char* function, int rank) {
    current_rank = rank;
    current_function = function;
}

InFunction::~InFunction() {
    current_function = nullptr;
}

}  // namespace zeroproof::harness
