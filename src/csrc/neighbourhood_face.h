#pragma once

#include <nanobind/nanobind.h>

namespace gamma_kg {

void define_neighbourhoods(nanobind::module_& module);

}  // namespace gamma_kg
