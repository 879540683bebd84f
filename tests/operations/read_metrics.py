"""Parses metrics on standard input with Prometheus' strict OpenMetrics parser, and prints them as JSON.

Each family has its type, unit, help and samples: [name, labels, value].
"""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

families = {}
for family in text_string_to_metric_families(sys.stdin.read()):
    samples = [[sample.name, sample.labels, sample.value] for sample in family.samples]
    families[family.name] = {"type": family.type, "unit": family.unit, "help": family.documentation, "samples": samples}
json.dump(families, sys.stdout)
