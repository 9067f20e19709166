"""Phrases by which the general reader knows what a text is about.

Each pattern is verbose and without regard to case.  Texts of PyTorch 2.13's binaries and Python
sources, and of the libraries in the catalogue, were the samples; tests/messages holds them.
"""

from __future__ import annotations

import re

_FLAGS = re.IGNORECASE | re.VERBOSE

_NAMES = r"""(?:cpu|cuda|mps|xpu|hpu|npu|meta|xla|hip|ipu|mtia|privateuseone|vulkan|openreg|mlu|musa|gcu|sdaa|dml
    |tpu|gpu)"""
_DTYPES = r"(?:BFloat16|Float|Double|Half|Long|Int|Short|Char|Byte|Bool|Complex\w+)"
_ACCELERATOR = r"(?:cuda|gpus?|nvidia|mps|xpu|npu|hpu|tpu|rocm|hip|metal|accelerators?|mlu|musa)"

# A device inside running text.  A name that is not known needs an index, and a word of place before it.
DEVICE = re.compile(
    rf"""(?:torch\.)?device\(\s*(?:type=)?['"]\w+(?::\d+)?['"](?:,\s*(?:index=)?-?\d+)?\s*\)
    |(?P<type>torch\.(?:\w+\.)?(?:sparse\.)?[A-Z]\w*Tensor\b|\b\w+?{_DTYPES}Type\b)
    |(?<![\w./:-]){_NAMES}(?::-?\d+)?(?![\w/(-]|\.\w|:\w)
    |(?:(?<=\bon\s)|(?<=\bon\s['"])|(?<=\bgot\s)|(?<=\bfound\s)|(?<=\bis\s)|(?<=\bvs\s)|(?<=\bvs\.\s)
       |(?<=device\s)|(?<=device\s['"])|(?<=device[=:])|(?<=device[=:]['"])|(?<=device:\s)|(?<=:\d\sand\s)|(?<=cpu\sand\s))
     (?!(?:node|port|host|line|rank|step|index|id|dim|item|row|col|epoch|version)\d*:)[a-z][a-z0-9_]+:\d+(?!\w|\.\d)""",
    _FLAGS,
)
# What is printed of tensors and options states devices that nobody complains about.
DUMP = re.compile(r"(?:FakeTensor|\btensor|Parameter|TensorOptions|size=)\([^()]*(?:\([^()]*\)[^()]*)*\)")

# Plain enough without any device beside it.
MISFIT = re.compile(
    r"""\bsame\s+(?:\w+\s+){0,3}(?:devices?|gpu|accelerator|card)\b(?!\s*mesh)
    |\b(?:different|multiple|mixed|incompatible|two|several|inconsistent|distinct)\s+(?:\w+\s+){0,2}devices\b(?!\s*mesh)
    |\bdifferent\s+(?:\w+\s+)?device\b(?!\s*mesh)
    |\bdevices?\s+(?:types?\s+)?(?:mis-?match|conflict|inconsisten|differ\b|incongruent|(?:do|does)(?:\s+not|n't)\s+match)
    |\b(?:mis-?match(?:ed|ing)?|inconsistent|incompatible|unmatched|wrong|unexpected)\s+(?:\w+\s+)?devices?\b
     (?!\s*(?:mesh|string))
    |\bdevices?\s+(?:\w+\s+){0,3}(?:must|should|need\s+to)\s+(?:be\s+(?:the\s+)?(?:same|equal|identical)|match)""",
    _FLAGS,
)
# ... even of things that nobody knows.
PLAINLY = re.compile(
    r"""\b(?:be|are|is|live|reside)\s+(?:all\s+)?(?:on|in)\s+(?:the\s+)?same\s+(?:\w+\s+)?(?:device|gpu)\b(?!\s*mesh)
    |\bon\s+(?:\w+\s+)?different\s+(?:devices|gpus)\b""",
    _FLAGS,
)
# ... as long as it speaks of tensors at all.
SUBJECT = re.compile(
    r"""\b(?:tensors?|\w*inputs?\w*|outputs?|weights?|bias|\w*param(?:eter)?s?|arg(?:ument)?s?|models?|modules?|buffers?|grad\w*
    |ind(?:ices|ex)|masks?|quer(?:y|ies)|keys?|values?|batch(?:es)?|arrays?|metrics?|boxes|scores|labels?|logits
    |targets?|states?|layers?|graph|features?|embeddings?|generator|loss(?:es)?|points?|images?|data|gpus?|torch|ops?|operands?|operations?)\b""",
    _FLAGS,
)
# Around a device that something is on, rather than one that is merely mentioned.
PLACE_BEFORE = re.compile(
    r"(?:\b(?:on|at|in|is|are|was|to|from|got|found|expected|devices?(?:\s+types?)?|of\s+type|received|actual|vs\.?|versus|and|but)|[=:(,])(?:\s+(?:the|an?))?$",
    _FLAGS,
)
PLACE_AFTER = re.compile(r"^\s*(?:tensors?|devices?|memory|arrays?|storage|inputs?)\b", _FLAGS)
CHOICE = re.compile(r"^['\"`]?\s*(?:or|,|/|\||,\s*or)\s*['\"`]?$", _FLAGS)
# One device is demanded: "must be a CUDA tensor", "can only run on GPU", "is not on CUDA".
DEMAND = re.compile(
    rf"""(?:\b(?:must|should|ha(?:s|ve)\s+to|needs?\s+to|required?\s+to|expect\w*(?:\s+\S+){{0,6}}?\s+(?<!_type\s)to|requires?|only)
      (?:\s+(?:be|have|been|reside|live|lie|stay|sit|already|all|both|placed|located|stored|contiguous|an?|the|on|and|in
        |to|run|work|with|works|supports?|supported|available|implemented|for|dense|moved|allocated|storage|contained|currently
        |device|memory|default))*?
     |\bto\s+be\s+(?:\w+\s+)?(?:on|in)(?:\s+(?:the|an?))?|\bexpected(?:\s+an?)?
     |\b(?:is|are)\s+(?:not|only)\s+(?:\w+\s+)?(?:on|an?|for)(?:\s+the)?)
    \s+['"`]?(?P<device>{_NAMES}(?::\d+)?)['"`]?
    (?:\s+(?:tensors?|devices?|memory|storage|inputs?|arrays?|backend)\b|[.,;:!]?\s*$|[.,;!]\s
      |\s+(?:but|and\s+got|instead|got|first|before|to\s)|\s*\()""",
    _FLAGS,
)
# Said between two devices that differ; weak alone.
AGAINST = re.compile(
    r"""\b(?:but|got|while|whereas|instead|however|expect\w*|must|should|mismatch\w*|differ\w*|match\w*|same|versus|vs|unlike
    |conflict\w*|inconsisten\w*|incompatible|not\s+(?:on|at|equal|allowed|supported)|cannot|can't|wrong|both)\b
    |!=|≠|<>""",
    _FLAGS,
)
TO_HOST = re.compile(
    r"""\b(?:can(?:no|')t|cannot|unable\s+to|could\s+not|not\s+possible)\b.{0,60}\b(?:numpy|ndarray|to\s+(?:the\s+)?host)\b
    |\bcopy\b.{0,30}\bto\s+(?:the\s+)?host\b""",
    _FLAGS,
)
WANTED = re.compile(r"\b(?:expect\w*|should|must|require\w*)\b", _FLAGS)
# "expected input on cuda:0": the name belongs to the other device
WANTED_OF = re.compile(r"\bexpect\w*\s+(?:the\s+)?(?P<label>\w+)(?:\s+tensor)?\s+(?:to\s+be\s+)?(?:on|at|in)\b", _FLAGS)
GOT = re.compile(r"\b(?:got|found|received|actual\w*|but|given|instead|is\s+on|was)\b", _FLAGS)

# A name right before a device: src is on, index.device =, mask (
LABEL = re.compile(
    r"""(?:^|[\s('"`\[{,;])(?P<label>[A-Za-z_][\w.\[\]]*?)['"`]?
    (?:'s)?(?:[.\s]device(?:\s+type)?|\s+tensors?(?:\s+device(?:\s+type)?)?|\s+argument|\s+type|\s+parameters?)?
    \s*(?:\(\s*(?:on\s+|at\s+|device\s*[=:]\s*)?
      |\s(?:is|are|was|were|lives?|resides?|being)?\s*(?:(?:currently|located|placed|allocated|stored)\s+)*
       (?:on|at|in)\s+(?:the\s+)?(?:device\s*[=:]?\s*)?
      |\s*(?:=|:|==)\s*|\)\s+|\s+is\s+)['"`]?$""",
    _FLAGS,
)

# These name a device and are about something else.
OTHER = re.compile(
    r"""out\s+of\s+memory|\bOOM\b|not\s+enough\s+memory|memory\s+allocat|tried\s+to\s+allocate|device[-\s]side
    |illegal\s+(?:memory|instruction|address)|misaligned\s+address|unspecified\s+launch
    |launch\s+(?:failure|failed|timed|out\s+of)|no\s+kernel\s+image|_STATUS_|\bNCCL|watchdog|unhandled\s+(?:cuda|system)
    |(?:CUDA|HIP|cuDNN)\s+error|cuda\s+runtime\s+error|scalar\s+type|not\s+(?:currently\s+)?implemented
    |support\s+float64|different\s+CUDA|CUDA\s+version|DTensor|device_?\s?mesh|determinis|state_dict
    |size\s+mismatch|be\s+one\s+of\b|unrecognized\s+arguments|invalid\s+choice|weights\s+only|compute\s+capability|Ampere
    |no\s+attribute\b|Guessing\s+device|no\s+space\s+left\s+on\s+device|no\s+such\s+(?:device|file)|\bbusy\b
    |\bdevices?(?:\s+\w+)?,?\s+(?:such\s+as|e\.g\.|for\s+example)""",
    _FLAGS,
)
QUALITY = re.compile(
    r"(?<!device\s)\b(?:d?types?(?!=)|shapes?|sizes?|dimensions?|dimensional|layouts?|ranks?|Long|Half)\b", _FLAGS
)

UNAVAILABLE = re.compile(
    rf"""\bno\s+(?:\w+\s+){{0,2}}{_ACCELERATOR}(?:[-\s]\w+){{0,4}}\s+(?:(?:is|are|was|were)\s+)?
      (?:available|found|detected|visible|present)
    |\bno\s+(?:(?:usable|available|suitable|visible)\s+)?{_ACCELERATOR}\b(?:\s+devices?)?\s*(?:[.!]|$|to\s+use)
    |\b(?:cannot|can't|could\s+not|unable\s+to)\s+find\s+(?:an?\s+|any\s+)?(?:\w+\s+)?{_ACCELERATOR}
      (?:\s+(?:gpus?|devices?|cards?|backend|drivers?))?\s*(?:[.,;!?]|$)
    |\b{_ACCELERATOR}\s+(?:(?:backend|devices?|support|accelerator|runtime|toolkit)\s+){{0,2}}(?:is|are)(?:\s+not|n't)\s+(?:currently\s+)?
      (?:available|enabled|installed|usable|present|compiled|initiali[sz]ed)
    |\b{_ACCELERATOR}\s+(?:\w+\s+){{0,2}}unavailable|\b{_ACCELERATOR}\s+not\s+(?:available|found|detected|enabled)
    |\bnot\s+(?:compiled|built|linked|installed)\s+with\s+(?:\w+\s+)?{_ACCELERATOR}\b
    |\bwithout\s+{_ACCELERATOR}\s+support\b
    |\b(?:requires?|needs?)\s+(?:an?\s+)?(?:\w+\s+)?{_ACCELERATOR}(?:[-\s](?:capable|enabled))?
      (?:\s+(?:gpu|device|support|card|runtime))?\s*(?:[.,;!(](?!\w)|$|to\s+(?:run|be|work))
    |\b(?:nvidia|cuda|gpu)\s+drivers?\b.{{0,60}}(?:too\s+old|insufficient|fail|(?:cannot|could\s+not)\s+be\s+found|not\s+found|missing|not\s+loaded|update)
    |\binvalid\s+device\s+(?:ordinal|id|index|number)|\bdevice\s+(?:index|ordinal|id)\b.{{0,30}}out\s+of\s+range
    |\b(?:cannot|can't|not\s+able\s+to)\s+use\s+(?:the\s+|an?\s+)?(?:gpu|cuda|mps)\b|failed\s+to\s+infer\s+device\s+type
    |is_available\(\)\s+(?:is|returned|==)\s+False""",
    _FLAGS,
)
