// exp and log as fixed sequences of IEEE operations, so that the loss has the same bits with every
// C library. Without fused multiply-adds: plain operations are the same everywhere.
//
// Algorithms and constants: FDLIBM (Sun Microsystems, 1993), e_exp.c and e_log.c, whose stated
// error is below 1 ulp in double. The float versions round the double result, so their error is
// below 0.5 ulp + 2^-29 ulp.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/compute/host_device.h"

namespace ddproof {

// e^x. Overflows to infinity and underflows through the subnormals to 0; NaN gives NaN.
DDPROOF_HOST_DEVICE inline double fixed_exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 709.782712893383973096) return std::numeric_limits<double>::infinity();
  if (x < -745.13321910194110842) return 0.0;
  constexpr double kLn2High =
      6.93147180369123816490e-01;  // 21 significant bits fewer: k * is exact
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  constexpr double kInverseLn2 = 1.44269504088896338700e+00;
  const double k = std::floor(x * kInverseLn2 + 0.5);
  const double high = x - k * kLn2High;
  const double low = k * kLn2Low;
  const double r = high - low;
  const double t = r * r;
  const double c =
      r - t * (1.66666666666666019037e-01 +
               t * (-2.77777777770155933842e-03 +
                    t * (6.61375632143793436117e-05 +
                         t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08))));
  const double y = 1.0 - ((low - (r * c) / (2.0 - c)) - high);
  // Two factors, both normal, reach the subnormals with a single rounding.
  const auto power = static_cast<std::int64_t>(k);
  const std::int64_t half = power / 2;
  const auto two_to = [](std::int64_t e) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52);
  };
  return y * two_to(half) * two_to(power - half);
}

// Natural logarithm. Requires: x is positive, normal and finite, or NaN or +infinity.
DDPROOF_HOST_DEVICE inline double fixed_log(double x) {
  if (!(x < std::numeric_limits<double>::infinity())) return x;
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  // x = 2^k * (1 + f) with 1 + f in [sqrt(2)/2, sqrt(2)).
  const auto bits = std::bit_cast<std::uint64_t>(x) + (0x3ff00000'00000000u - 0x3fe6a09e'00000000u);
  const double k = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
  const double f =
      std::bit_cast<double>((bits & 0x000fffff'ffffffffu) + 0x3fe6a09e'00000000u) - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double w = z * z;
  const double even = w * (3.999999999940941908e-01 +
                           w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const double odd = z * (6.666666666666735130e-01 +
                          w * (2.857142874366239149e-01 +
                               w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const double half_square = 0.5 * f * f;
  return s * (half_square + (even + odd)) + k * kLn2Low - half_square + f + k * kLn2High;
}

DDPROOF_HOST_DEVICE inline float fixed_exp(float x) {
  return static_cast<float>(fixed_exp(static_cast<double>(x)));
}
DDPROOF_HOST_DEVICE inline float fixed_log(float x) {
  return static_cast<float>(fixed_log(static_cast<double>(x)));
}

}  // namespace ddproof
