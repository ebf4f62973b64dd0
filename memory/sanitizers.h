// For tests: whether the program is watched by a sanitizer.
#pragma once

namespace zeroproof::memory {

#ifdef __has_feature  // clang's way to say it
#define ZEROPROOF_HAS_FEATURE(feature) __has_feature(feature)
#else
#define ZEROPROOF_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || ZEROPROOF_HAS_FEATURE(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || ZEROPROOF_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#undef ZEROPROOF_HAS_FEATURE

}  // namespace zeroproof::memory
