"""llama-cpp-python's OpenAI-compatible server, with its arguments, and without weights in other layouts.

Such layouts are made for instructions (AMX) that some virtual machines name without having them: llama.cpp crashes there.
"""

import runpy

from llama_cpp import llama_cpp as library

usual = library.llama_model_default_params


def careful():
    params = usual()
    params.use_extra_bufts = False
    return params


library.llama_model_default_params = careful
runpy.run_module("llama_cpp.server", run_name="__main__")
