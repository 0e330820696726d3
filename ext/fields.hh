// Scalar parameters by name, so that the binding needs no list of its own.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "network/parameters.hh"
#include "system/parameters.hh"

namespace hpcmoe {

// A number from Python: `real` for floats, `whole` for integers and booleans.
struct Number {
  bool is_real = false;
  double real = 0;
  std::uint64_t whole = 0;
};

template <class T>
void assign_field(T& field, const std::string& name, const Number& value) {
  if constexpr (std::is_floating_point_v<T>) {
    field = value.is_real ? value.real : static_cast<double>(value.whole);
  } else {
    if (value.is_real) throw InputError("parameter " + name + " takes a whole number");
    if (value.whole > std::numeric_limits<T>::max()) {
      throw InputError("parameter " + name + " = " + std::to_string(value.whole) + " is above " +
                       std::to_string(std::numeric_limits<T>::max()));
    }
    field = static_cast<T>(value.whole);
  }
}

#define HPCMOE_SET_FIELD(type, field)          \
  if (name == #field) {                        \
    assign_field(params.field, #field, value); \
    return true;                               \
  }
#define HPCMOE_NAME_FIELD(type, field) names.push_back(#field);

// False when there is no field of that name.
inline bool set_field(NetworkParams& params, const std::string& name, const Number& value) {
  HPCMOE_NETWORK_FIELDS(HPCMOE_SET_FIELD)
  return false;
}
inline bool set_field(SystemParams& params, const std::string& name, const Number& value) {
  HPCMOE_SYSTEM_FIELDS(HPCMOE_SET_FIELD)
  return false;
}

inline std::vector<std::string> network_field_names() {
  std::vector<std::string> names;
  HPCMOE_NETWORK_FIELDS(HPCMOE_NAME_FIELD)
  return names;
}
inline std::vector<std::string> system_field_names() {
  std::vector<std::string> names;
  HPCMOE_SYSTEM_FIELDS(HPCMOE_NAME_FIELD)
  return names;
}

#undef HPCMOE_SET_FIELD
#undef HPCMOE_NAME_FIELD

}  // namespace hpcmoe
