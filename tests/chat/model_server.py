"""Runs llama-cpp-python's OpenAI-compatible server, with its arguments, without repacked weights.

Repacked weights use AMX instructions, which some virtual machines report without supporting them; llama.cpp crashes there.
"""

import runpy

from llama_cpp import llama_cpp as library

default_params = library.llama_model_default_params


def params_without_repacking():
    params = default_params()
    params.use_extra_bufts = False
    return params


library.llama_model_default_params = params_without_repacking
runpy.run_module("llama_cpp.server", run_name="__main__")
