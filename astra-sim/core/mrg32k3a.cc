#include "core/mrg32k3a.hh"

namespace hpcmoe {
namespace {

using Vector = std::array<std::uint64_t, 3>;
using Matrix = std::array<Vector, 3>;

constexpr std::uint64_t kM1 = 4294967087ULL;  // 2^32 - 209
constexpr std::uint64_t kM2 = 4294944443ULL;  // 2^32 - 22853
constexpr std::uint64_t kA12 = 1403580, kA13n = 810728;
constexpr std::uint64_t kA21 = 527612, kA23n = 1370589;
constexpr double kNorm = 1.0 / (static_cast<double>(kM1) + 1.0);

constexpr Matrix kStep1 = {{{0, 1, 0}, {0, 0, 1}, {kM1 - kA13n, kA12, 0}}};
constexpr Matrix kStep2 = {{{0, 1, 0}, {0, 0, 1}, {kM2 - kA23n, 0, kA21}}};

constexpr Matrix multiply(const Matrix& a, const Matrix& b, std::uint64_t m) {
  Matrix c{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 3; ++k) c[i][j] = (c[i][j] + a[i][k] * b[k][j] % m) % m;
    }
  }
  return c;
}

constexpr Vector apply(const Matrix& a, const Vector& v, std::uint64_t m) {
  Vector r{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) r[i] = (r[i] + a[i][k] * v[k] % m) % m;
  }
  return r;
}

constexpr Matrix square_times(Matrix a, int times, std::uint64_t m) {
  for (int i = 0; i < times; ++i) a = multiply(a, a, m);
  return a;
}

constexpr Matrix kStream1 = square_times(kStep1, 127, kM1);
constexpr Matrix kStream2 = square_times(kStep2, 127, kM2);
constexpr Matrix kRun1 = square_times(kStep1, 76, kM1);
constexpr Matrix kRun2 = square_times(kStep2, 76, kM2);

Vector jump(Matrix step, Vector v, std::uint64_t count, std::uint64_t m) {
  for (; count != 0; count >>= 1) {
    if (count & 1) v = apply(step, v, m);
    step = multiply(step, step, m);
  }
  return v;
}

}  // namespace

Mrg32k3a::Mrg32k3a(std::uint64_t stream, std::uint64_t seed) : x_{seed, seed, seed}, y_{seed, seed, seed} {
  x_ = apply(kRun1, x_, kM1);
  y_ = apply(kRun2, y_, kM2);
  skip_streams(stream);
}

void Mrg32k3a::skip_streams(std::uint64_t count) {
  if (count == 1) {  // the usual case of one draw after another
    x_ = apply(kStream1, x_, kM1);
    y_ = apply(kStream2, y_, kM2);
    return;
  }
  x_ = jump(kStream1, x_, count, kM1);
  y_ = jump(kStream2, y_, count, kM2);
}

double Mrg32k3a::next() {
  // Each product fits 64 bits, their sum does not always.
  const std::uint64_t p1 = (kA12 * x_[1] % kM1 + (kM1 - kA13n) * x_[0] % kM1) % kM1;
  const std::uint64_t p2 = (kA21 * y_[2] % kM2 + (kM2 - kA23n) * y_[0] % kM2) % kM2;
  x_ = {x_[1], x_[2], p1};
  y_ = {y_[1], y_[2], p2};
  const std::uint64_t difference = p1 > p2 ? p1 - p2 : p1 + kM1 - p2;
  return static_cast<double>(difference) * kNorm;
}

double Mrg32k3a::peek() const {
  Mrg32k3a copy = *this;
  return copy.next();
}

double StreamPerDraw::draw() {
  if (skipped_ != 0) generator_.skip_streams(skipped_);
  skipped_ = 1;
  return generator_.peek();
}

}  // namespace hpcmoe
