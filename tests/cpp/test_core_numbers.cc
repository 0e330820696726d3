// Exact arithmetic: serialization times, hashes, random streams. Reference values were printed by
// the ns-3 program with the RDMA model unless a test says how they were derived.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "core/hash.hh"
#include "core/mrg32k3a.hh"
#include "core/tx_time.hh"
#include "network/routing.hh"
#include "network_fixture.hh"

using namespace hpcmoe;
using hpcmoe::testing::kGbps;

TEST_CASE("tx time: nearest nanosecond, halves down unless they are exact") {
  CHECK(tx_time_ns(1036, 400 * kGbps) == 21);  // 20.72
  CHECK(tx_time_ns(1025, 400 * kGbps) == 20);  // 20.5: 8200 / 400e9 has no finite binary fraction
  CHECK(tx_time_ns(1075, 400 * kGbps) == 21);  // 21.5
  CHECK(tx_time_ns(1078, 400 * kGbps) == 22);  // 21.56
  CHECK(tx_time_ns(48, 400 * kGbps) == 1);     // 0.96
  CHECK(tx_time_ns(76, 400 * kGbps) == 2);     // 1.52
  CHECK(tx_time_ns(31, 400 * kGbps) == 1);     // 0.62
  CHECK(tx_time_ns(76, 2400 * kGbps) == 0);    // 0.25
  CHECK(tx_time_ns(1036, 100 * kGbps) == 83);  // 82.88
  CHECK(tx_time_ns(48, 100 * kGbps) == 4);     // 3.84
  CHECK(tx_time_ns(1036, 25 * kGbps) == 332);  // 331.52
  CHECK(tx_time_ns(1000, 8 * kGbps) == 1000);
}

TEST_CASE("tx time: edges") {
  CHECK(tx_time_ns(0, 400 * kGbps) == 0);
  CHECK(tx_time_ns(1, 8) == kGbps);  // one second
  CHECK(tx_time_ns(1, 1) == 8 * kGbps);
  CHECK(tx_time_ns(~std::uint32_t{0}, 1) == 8ULL * 4294967295ULL * kGbps);
  CHECK(tx_time_ns(~std::uint32_t{0}, ~RateBps{0}) == 2);  // 1.86: 3.4e10 bits at 1.8e19 bit/s
  CHECK(tx_time_ns(1, 16 * kGbps) == 0);                   // exactly half a nanosecond, not exact in binary
  CHECK(tx_time_ns(125, 1ULL << 40) == 1);                 // 0.909
}

// 2^-10 s is 976562.5 ns and has a finite binary fraction.
TEST_CASE("tx time: an exact half goes up") { CHECK(tx_time_ns(1, 8 * 1024) == 976'563); }

TEST_CASE("tx time: within half a nanosecond of the true value for any rate") {
  for (RateBps rate = 1'000'003; rate < 3000 * kGbps; rate = rate * 7 / 3) {
    for (std::uint32_t bytes : {1U, 31U, 48U, 76U, 1036U, 1078U, 9036U}) {
      const long double exact = static_cast<long double>(bytes) * 8e9L / static_cast<long double>(rate);
      CHECK(std::abs(static_cast<long double>(tx_time_ns(bytes, rate)) - exact) <= 0.5000001L);
    }
  }
}

namespace {

std::uint32_t flow_hash(std::uint32_t src, std::uint32_t dst, std::uint32_t sport, std::uint32_t dport,
                        std::uint32_t seed) {
  return murmur3_words(host_address(src), host_address(dst), sport | (dport << 16), seed);
}

}  // namespace

TEST_CASE("hash: addresses and flow hashes of the reference") {
  CHECK(host_address(0) == 0x0b000001);
  CHECK(host_address(5) == 0x0b000501);
  CHECK(host_address(300) == 0x0b012c01);
  CHECK(flow_hash(0, 1, 10000, 100, 0x8BADF00D) == 3887419479U);
  CHECK(flow_hash(1, 0, 100, 10000, 0x8BADF00D) == 2689491449U);
  CHECK(flow_hash(0, 4, 10000, 100, 16) == 4162883797U);
  CHECK(flow_hash(0, 4, 10001, 100, 16) == 1767552784U);
  CHECK(flow_hash(0, 15, 10000, 100, 16) == 1922962854U);
  CHECK(flow_hash(4, 0, 100, 10000, 17) == 2622064476U);
  CHECK(flow_hash(300, 5, 10007, 100, 1000) == 2393538366U);
}

// Positions from exact integer arithmetic. On the way to the second one, the sum of the two products of a
// step passes 2^64.
TEST_CASE("random streams: a step whose products add up to more than 64 bits") {
  Mrg32k3a generator((std::uint64_t{1} << 63) + 50, 20);
  std::vector<int> small;
  for (int draw = 1; draw <= 3000; ++draw) {
    if (generator.next() < 0.001) small.push_back(draw);
  }
  CHECK(small == std::vector<int>{178, 1317, 2383});
}

TEST_CASE("keyed numbers: in [0, 1), reproducible, and every key matters") {
  std::set<double> seen;
  for (std::uint64_t seed : {1, 2}) {
    for (std::uint64_t identity = 0; identity < 20; ++identity) {
      for (std::uint64_t count = 0; count < 50; ++count) {
        const double u = keyed_uniform(seed, identity, count);
        CHECK(u >= 0);
        CHECK(u < 1);
        CHECK(u == keyed_uniform(seed, identity, count));
        seen.insert(u);
      }
    }
  }
  CHECK(seen.size() == 2 * 20 * 50);
}

// Standard deviation of the mean of n uniform numbers is 1 / sqrt(12 n): 0.0009 here.
TEST_CASE("keyed numbers: consecutive counts of one port are spread evenly") {
  constexpr int kCount = 100'000;
  double sum = 0;
  int below_tenth = 0;
  for (int i = 0; i < kCount; ++i) {
    const double u = keyed_uniform(1, (std::uint64_t{17} << 32) | 4, static_cast<std::uint64_t>(i));
    sum += u;
    below_tenth += u < 0.1 ? 1 : 0;
  }
  CHECK(std::abs(sum / kCount - 0.5) < 0.004);
  CHECK(std::abs(below_tenth / double{kCount} - 0.1) < 0.004);
}

TEST_CASE("MRG32k3a: first and second numbers of streams") {
  Mrg32k3a zero(0);
  CHECK(zero.next() == 0.81653204416825098);
  CHECK(zero.next() == 0.60684585087558651);
  CHECK(Mrg32k3a(1).next() == 0.83515007368084404);
  CHECK(Mrg32k3a(2).next() == 0.94389846625991203);
  CHECK(Mrg32k3a(83).next() == 0.45835465480055854);
  CHECK(Mrg32k3a(84).next() == 0.24326989697295676);
  CHECK(Mrg32k3a(218).next() == 0.20844368342223724);
  Mrg32k3a errors((std::uint64_t{1} << 63) + 50);
  CHECK(errors.next() == 0.46039245737754536);
  CHECK(errors.next() == 0.056660465380497467);
}

TEST_CASE("MRG32k3a: skipping streams, peeking, seeds") {
  Mrg32k3a generator(3);
  generator.skip_streams(80);
  CHECK(generator.peek() == 0.45835465480055854);
  CHECK(generator.peek() == 0.45835465480055854);
  generator.skip_streams(1);
  CHECK(generator.peek() == 0.24326989697295676);
  generator.skip_streams(0);
  CHECK(generator.next() == 0.24326989697295676);
  CHECK(Mrg32k3a(0, 2).next() != Mrg32k3a(0, 1).next());
}

TEST_CASE("MRG32k3a: numbers stay in (0, 1] and average to a half") {
  Mrg32k3a generator(5);
  double sum = 0;
  constexpr int kCount = 100'000;
  for (int i = 0; i < kCount; ++i) {
    const double u = generator.next();
    REQUIRE(u > 0);
    REQUIRE(u <= 1);
    sum += u;
  }
  CHECK(std::abs(sum / kCount - 0.5) < 0.004);
}

TEST_CASE("one stream per draw: a skipped draw uses up its stream") {
  StreamPerDraw draws(83, 1);
  CHECK(draws.draw() == 0.45835465480055854);
  CHECK(draws.draw() == 0.24326989697295676);
  StreamPerDraw later(1, 1);
  later.skip();
  CHECK(later.draw() == 0.94389846625991203);
  for (int i = 3; i < 83; ++i) later.skip();
  CHECK(later.draw() == 0.45835465480055854);
  CHECK(later.draw() == 0.24326989697295676);
}
