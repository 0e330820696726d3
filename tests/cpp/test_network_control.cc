// Congestion controllers, each on its own. Expected rates of HPCC and DCQCN marked "reference" are
// those of runs that agree with the ns-3 program to the nanosecond; the others follow from the rules
// by exact IEEE arithmetic.
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "controller_bench.hh"
#include "network/congestion/dcqcn.hh"
#include "network/congestion/dctcp.hh"
#include "network/congestion/hpcc.hh"
#include "network/congestion/timely.hh"
#include "network_fixture.hh"

using namespace hpcmoe;
using namespace hpcmoe::testing;

namespace {

constexpr RateBps kLine = 400 * kGbps;

struct Hop {
  TimeNs time_ns;
  std::uint64_t sent_units;   // of 128 bytes
  std::uint64_t queue_units;  // of 80 bytes
};

// A flow on one 400 Gbit/s hop: round trip 2040 ns, window 102000 bytes.
class HpccBench : public ControllerBench<Hpcc> {
 public:
  explicit HpccBench(const NetworkParams& params, RateBps rate = kLine)
      : ControllerBench(params, rate, kLine) {
    qp.window = 102'000;
    qp.base_rtt_ns = 2040;
    qp.snd_nxt = 94'000;
    hop_rates = {kLine};
  }
  RateBps ack(std::uint32_t seq, const std::vector<Hop>& hops) {
    IntRecords records;
    for (std::size_t i = 0; i < hops.size() && i < records.size(); ++i) {
      records[i] = IntRecord::make(hops[i].time_ns, hops[i].sent_units, hops[i].queue_units);
    }
    ControllerBench::ack({seq, false, static_cast<std::uint8_t>(hops.size()), 0, &records});
    return qp.rate;
  }
};

NetworkParams hpcc_params() {
  NetworkParams p = plain_params();
  p.cc_mode = kHpcc;
  return p;
}

}  // namespace

// A megabyte over a star: the first ACK, at 2048 ns, only stores its record. 1078 bytes are 8.42 units,
// so the counter of the switch moves by 8, 8, 9, 8, 9 ... units every 22 ns.
TEST_CASE("HPCC: rates of a single flow (reference), then a full update") {
  HpccBench bench(hpcc_params());
  CHECK(bench.ack(1000, {{522, 0, 0}}) == kLine);
  CHECK(bench.ack(2000, {{544, 8, 0}}) == 380'333'348'377);
  CHECK(bench.ack(3000, {{566, 16, 0}}) == 380'614'057'092);
  CHECK(bench.ack(4000, {{588, 25, 0}}) == 380'413'769'525);
  // The first ACK beyond 94000, what had been sent at the first one: this rate is committed ...
  CHECK(bench.ack(95'000, {{610, 33, 0}}) == 380'693'728'273);
  // ... and later fast reactions start from it instead of the line rate.
  CHECK(bench.ack(93'000, {{632, 42, 0}}) == 362'130'182'761);
  CHECK(bench.ack(93'500, {{654, 50, 25}}) == 362'395'930'048);
}

// The smaller of two queues counts: 500 units, 40000 bytes of a 102000-byte window.
TEST_CASE("HPCC: a standing queue cuts the rate") {
  HpccBench bench(hpcc_params());
  bench.ack(1000, {{0, 0, 1000}});
  CHECK(bench.ack(2000, {{2000, 800, 500}}) == 269'936'953'197);
}

TEST_CASE("HPCC: counters wrap at 24 bits of time and 20 bits of bytes") {
  HpccBench bench(hpcc_params());
  bench.ack(1000, {{(1 << 24) - 100, (1 << 20) - 50, 0}});
  HpccBench plain(hpcc_params());
  plain.ack(1000, {{0, 0, 0}});
  const RateBps rate = bench.ack(2000, {{(1 << 24) + 100, (1 << 20) + 50, 0}});
  CHECK(rate == plain.ack(2000, {{200, 100, 0}}));
  CHECK(rate != kLine);
}

TEST_CASE("HPCC: below the target the first steps are additive") {
  NetworkParams p = hpcc_params();
  p.mi_thresh = 2;
  HpccBench bench(p, 10 * kGbps);  // half used: 398 units of 128 bytes in 2040 ns
  std::uint32_t seq = 1000;
  std::uint64_t k = 0;
  const auto next = [&] {
    bench.qp.snd_nxt = seq;  // every ACK is a full update
    const RateBps rate = bench.ack(seq, {{2040 * k, 398 * k, 0}});
    seq += 1000;
    ++k;
    return rate;
  };
  CHECK(next() == 10'000'000'000);
  CHECK(next() == 10'050'000'000);
  CHECK(next() == 10'100'000'000);
  CHECK(next() == 19'261'094'535);
  CHECK(next() == 19'311'094'535);
}

TEST_CASE("HPCC: without fast reaction only full updates act") {
  NetworkParams p = hpcc_params();
  p.fast_react = false;
  HpccBench bench(p);
  bench.ack(1000, {{522, 0, 0}});
  CHECK(bench.ack(2000, {{544, 8, 0}}) == kLine);
  CHECK(bench.ack(95'000, {{610, 33, 0}}) < kLine);
}

TEST_CASE("HPCC: sample feedback ignores an empty queue between full updates") {
  NetworkParams p = hpcc_params();
  p.sample_feedback = true;
  HpccBench bench(p);
  bench.ack(1000, {{522, 0, 0}});
  CHECK(bench.ack(2000, {{544, 8, 0}}) == kLine);
  CHECK(bench.ack(3000, {{566, 16, 1}}) < kLine);
}

TEST_CASE("HPCC: more switches than the field has slots mean no reaction") {
  HpccBench bench(hpcc_params());
  const std::vector<Hop> six(6, Hop{522, 0, 0}), later(6, Hop{544, 900, 0});
  CHECK(bench.ack(1000, six) == kLine);
  CHECK(bench.ack(2000, later) == kLine);
  CHECK(bench.ack(95'000, later) == kLine);
}

// Window 26250 bytes, round trip 2100 ns; hops of 400 and 100 Gbit/s. The second hop has its own rate.
TEST_CASE("HPCC: one rate per hop, and the flow takes the smallest") {
  NetworkParams p = hpcc_params();
  p.multi_rate = true;
  HpccBench bench(p);
  bench.qp.window = 26'250;
  bench.qp.base_rtt_ns = 2100;
  bench.hop_rates = {kLine, 100 * kGbps};
  CHECK(bench.ack(1000, {{100, 0, 0}, {200, 0, 0}}) == kLine);
  CHECK(bench.ack(2000, {{1100, 300, 0}, {1200, 90, 60}}) == 394'786'842'105);
  CHECK(bench.ack(95'000, {{2100, 600, 0}, {2200, 180, 80}}) == 294'301'920'942);
  CHECK(bench.ack(93'000, {{3100, 900, 0}, {3200, 270, 10}}) == 238'328'787'530);
}

TEST_CASE("HPCC: the rate stays between the floor and the line") {
  NetworkParams p = hpcc_params();
  p.min_rate_bps = 50 * kGbps;
  HpccBench bench(p);
  bench.ack(1000, {{0, 0, 100'000}});
  CHECK(bench.ack(2000, {{2040, 800, 100'000}}) == 50 * kGbps);
  HpccBench idle(hpcc_params());
  idle.ack(1000, {{0, 0, 0}});
  CHECK(idle.ack(2000, {{2040, 1, 0}}) == kLine);
}

namespace {

NetworkParams dcqcn_params() {
  NetworkParams p = plain_params();
  p.cc_mode = kDcqcn;
  return p;
}
using DcqcnBench = ControllerBench<Dcqcn>;

}  // namespace

// Alpha ages at 25589, 26589, 27589 and 28589, one nanosecond before the cut, then four times more, one
// of them, the third, after a mark.
TEST_CASE("DCQCN: cuts of an incast flow (reference)") {
  DcqcnBench bench(dcqcn_params(), 100 * kGbps, 100 * kGbps);
  bench.mark_at(24'589);
  CHECK(bench.rate_at(28'589) == 100 * kGbps);
  CHECK(bench.rate_at(28'590) == 50'776'684'272);
  bench.mark_at(31'000);
  CHECK(bench.rate_at(32'589) == 50'776'684'272);
  CHECK(bench.rate_at(32'590) == 26'072'179'271);
}

TEST_CASE("DCQCN: cut of another incast flow (reference), marked before the third ageing") {
  DcqcnBench bench(dcqcn_params(), 100 * kGbps, 100 * kGbps);
  bench.mark_at(25'057);
  bench.mark_at(27'500);
  CHECK(bench.rate_at(29'058) == 50'582'134'712);
}

TEST_CASE("DCQCN: the first mark alone cuts once; without marks nothing more happens") {
  DcqcnBench bench(dcqcn_params(), 100 * kGbps, 100 * kGbps);
  bench.mark_at(1000);
  CHECK(bench.rate_at(5001) == 50'776'684'272);
  CHECK(bench.rate_at(900'000) == 50'776'684'272);
}

// 900 us after the cut: back half way to the target of 100 Gbit/s (fast recovery), then the target
// rises by 50 Mbit/s once and by 100 Mbit/s from then on, up to the line rate.
TEST_CASE("DCQCN: recovery, additive and hyper increase") {
  DcqcnBench bench(dcqcn_params(), 100 * kGbps, 200 * kGbps);
  bench.mark_at(0);
  REQUIRE(bench.rate_at(4001) == 50'776'684'272);
  const RateBps recovered = 50'776'684'272 / 2 + 50 * kGbps;
  CHECK(bench.rate_at(904'000) == 50'776'684'272);
  CHECK(bench.rate_at(904'001) == recovered);
  const RateBps additive = recovered / 2 + 100'050'000'000 / 2;
  CHECK(bench.rate_at(1'804'001) == additive);
  const RateBps hyper = additive / 2 + 100'150'000'000 / 2;
  CHECK(bench.rate_at(2'704'001) == hyper);
  CHECK(bench.rate_at(3'604'001) == hyper / 2 + 100'250'000'000 / 2);
}

TEST_CASE("DCQCN: the target stays at the line rate") {
  DcqcnBench bench(dcqcn_params(), 100 * kGbps, 100 * kGbps);
  bench.mark_at(0);
  CHECK(bench.rate_at(100'000'000) <= 100 * kGbps);
  CHECK(bench.rate_at(100'000'000) > 99 * kGbps);
}

// A cut in the middle of recovery sets the target to the rate before it, and starts the timer anew.
TEST_CASE("DCQCN: a cut during recovery lowers the target") {
  DcqcnBench bench(dcqcn_params(), 100 * kGbps, 100 * kGbps);
  bench.mark_at(0);
  const RateBps before = bench.rate_at(910'000);
  CHECK(before == 50'776'684'272 / 2 + 50 * kGbps);
  bench.mark_at(910'500);
  const RateBps after = bench.rate_at(912'001);  // cuts are due every 4000 ns from 4001 on
  CHECK(after < before);
  CHECK(bench.rate_at(1'812'000) == after);  // the old timer, due at 1804001, is void
  CHECK(bench.rate_at(1'812'001) == after / 2 + before / 2);
}

TEST_CASE("DCQCN: clamping sets the target at every cut") {
  NetworkParams p = dcqcn_params();
  DcqcnBench plain(p, 100 * kGbps, 100 * kGbps);
  p.clamp_target_rate = true;
  DcqcnBench clamped(p, 100 * kGbps, 100 * kGbps);
  for (DcqcnBench* bench : {&plain, &clamped}) {
    bench->mark_at(0);
    bench->mark_at(5000);
    REQUIRE(bench->rate_at(8001) < 30 * kGbps);
  }
  CHECK(plain.rate_at(908'001) > 60 * kGbps);    // half way to 100 Gbit/s
  CHECK(clamped.rate_at(908'001) < 40 * kGbps);  // half way to 50.8 Gbit/s
}

TEST_CASE("DCQCN: rates do not fall below the floor") {
  DcqcnBench bench(dcqcn_params(), 100 * kGbps, 100 * kGbps);
  for (TimeNs t = 0; t < 400'000; t += 500) bench.mark_at(t);
  CHECK(bench.qp.rate == 100'000'000);
}

TEST_CASE("DCQCN: timers of a finished flow leave the next flow in its place alone") {
  DcqcnBench bench(dcqcn_params(), 100 * kGbps, 100 * kGbps);
  for (TimeNs t = 0; t <= 40'000; t += 1000) bench.mark_at(t);
  CHECK(bench.qp.rate < kGbps);
  bench.finish();
  bench.run_to(50'000);
  bench.begin(100 * kGbps, 100 * kGbps);
  bench.mark_at(50'000);
  const RateBps cut = bench.rate_at(54'001);
  CHECK(cut == 50'776'684'272);
  // Its own increase is due 900 us after its cut; the old flow's timers would fire before.
  CHECK(bench.rate_at(954'000) == cut);
  CHECK(bench.rate_at(954'001) == cut / 2 + 50 * kGbps);
}

TEST_CASE("DCTCP: one cut per window by the marked share, additive increase without marks") {
  NetworkParams p = plain_params();
  p.cc_mode = kDctcp;
  p.ewma_gain = 1.0 / 16;
  ControllerBench<Dctcp> bench(p, 100 * kGbps, 100 * kGbps);
  const auto ack = [&](std::uint32_t seq, bool marked, std::uint64_t sent) {
    bench.qp.snd_nxt = sent;
    bench.ack({seq, marked, 0, 0, nullptr});
    return bench.qp.rate;
  };
  CHECK(ack(1000, false, 10'000) == 100 * kGbps);   // first batch: 11 packets; already at the line rate
  CHECK(ack(2000, true, 12'000) == 50 * kGbps);     // alpha is 1: half
  CHECK(ack(3000, true, 13'000) == 50 * kGbps);     // not again before 12000 is passed
  CHECK(ack(11'000, false, 20'000) == 50 * kGbps);  // new batch, but still within the cut's window
  CHECK(ack(13'000, false, 21'000) == 50 * kGbps);  // window over, not a new batch
  CHECK(ack(21'000, false, 30'000) == 51 * kGbps);
  // Two of eleven were marked: alpha is (15/16 + 2/11/16) * 15/16 by now.
  CHECK(ack(22'000, true, 31'000) == 28'316'228'693);
}

TEST_CASE("TIMELY: gradient and limits of the round-trip time") {
  NetworkParams p = plain_params();
  p.cc_mode = kTimely;
  ControllerBench<Timely> bench(p, 10 * kGbps, 100 * kGbps);
  bench.run_to(5'000'000);
  std::uint32_t seq = 1000;
  const auto ack = [&](TimeNs rtt_ns) {
    bench.qp.snd_nxt = seq;  // every ACK ends a round
    bench.ack({seq, false, 0, bench.now() - rtt_ns, nullptr});
    seq += 1000;
    return bench.qp.rate;
  };
  CHECK(ack(30'000) == 10'000'000'000);    // only remembered
  CHECK(ack(45'000) == 10'050'000'000);    // below 50 us: up by 50 Mbit/s
  CHECK(ack(1'000'000) == 6'030'000'000);  // above 500 us: times 1 - 0.8 * (1 - 0.5)
  CHECK(ack(100'000) == 6'080'000'000);    // falling: up
  CHECK(ack(120'000) == 6'130'000'000);    // rising, but the average still falls
  CHECK(ack(130'000) == 6'064'262'634);    // rising by 268 ns on average: times 1 - 0.8 * 268.1 / 20000
  CHECK(ack(100'000) == 6'114'262'634);
}

TEST_CASE("TIMELY: ACKs within a round change nothing; five small steps, then large ones") {
  NetworkParams p = plain_params();
  p.cc_mode = kTimely;
  ControllerBench<Timely> bench(p, 10 * kGbps, 12 * kGbps);
  bench.run_to(1'000'000);
  const auto ack = [&](std::uint32_t seq) {
    bench.ack({seq, false, 0, bench.now() - 1000, nullptr});
    return bench.qp.rate;
  };
  bench.qp.snd_nxt = 5000;
  ack(1000);
  CHECK(ack(5000) == 10 * kGbps);
  for (std::uint32_t i = 1; i <= 5; ++i) {
    bench.qp.snd_nxt = 5000 + i;
    CHECK(ack(5000 + i) == 10 * kGbps + i * 50'000'000);
  }
  bench.qp.snd_nxt = 6000;
  CHECK(ack(5900) == 10'350'000'000);
  for (std::uint32_t i = 1; i < 50; ++i) {
    bench.qp.snd_nxt = 6000 + i;
    ack(6000 + i);
  }
  CHECK(bench.qp.rate == 12 * kGbps);  // the line rate
}

TEST_CASE("INT record: fields and their widths") {
  const IntRecord r = IntRecord::make(0x1ABCDEF, 0x1FFFFF, 0x3FFFF);
  CHECK(r.time() == 0xABCDEF);
  CHECK(r.bytes() == 0xFFFFF);
  CHECK(r.queue() == 0x1FFFF);
  const IntRecord small = IntRecord::make(1, 2, 3);
  CHECK(small.time() == 1);
  CHECK(small.bytes() == 2);
  CHECK(small.queue() == 3);
}
