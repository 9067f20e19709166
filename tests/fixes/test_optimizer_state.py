"""All that an optimizer keeps goes where its parameters are: at any depth of its state, and in its groups."""

from __future__ import annotations

import pytest
from mended import IMPORTS, Notebook, check_first_fix

from ipydevice.fixes.optimizer_code import moving

# Keeps a running sum where HOLD says, and reads it back there.
_KEEPING = (
    IMPORTS + "import io\nclass Keeping(torch.optim.Optimizer):\n    def __init__(self, params):\n"
    "        super().__init__(params, dict(lr=0.1, kept=None))\n"
    "    @torch.no_grad()\n    def step(self):\n        for group in self.param_groups:\n"
    "            for p in group['params']:\n                HOLD\n"
)
_STEP = (
    "def step(net, opt):\n    opt.zero_grad()\n"
    "    net(torch.ones(2, 3, device=net.weight.device)).pow(2).sum().backward()\n    opt.step()\n"
)
_LOADED = (
    "first = nn.Linear(3, 1, bias=False)\nopt1 = Keeping(first.parameters())\nstep(first, opt1)\nfile = io.BytesIO()\n"
    "torch.save({'net': first.state_dict(), 'opt': opt1.state_dict()}, file)",
    "def fresh():\n    net = nn.Linear(3, 1, bias=False).to(DEV)\n    return net, Keeping(net.parameters())",
    "file.seek(0)\nsaved = torch.load(file, map_location='cpu')\nnet, opt = fresh()\n"
    "net.load_state_dict(saved['net'])\nopt.load_state_dict(saved['opt'])",
    "step(net, opt)\nout = net.weight",
)


def _keeping(hold: str) -> str:
    return _KEEPING.replace("HOLD", hold.replace("\n", "\n" + " " * 16))


_IN_GROUP = (
    "if group['kept'] is None:\n    group['kept'] = torch.zeros(1, 3, device=p.device)\n"
    "group['kept'] = group['kept'] + p.grad\np.sub_(group['lr'] * group['kept'])"
)
_IN_LIST_OF_GROUP = (
    "if group['kept'] is None:\n    group['kept'] = [torch.zeros_like(p), 0]\n"
    "group['kept'][0] = group['kept'][0] + p.grad\np.sub_(group['lr'] * group['kept'][0])"
)
_IN_LISTS = (
    "state = self.state[p]\nif not state:\n"
    "    state['step'], state['last'] = torch.tensor(0.0), {'grads': [p.grad, 1]}\nstate['step'] += 1\n"
    "last = state['last']['grads']\nlast[0] = last[0] * 0.9 + p.grad\np.sub_(group['lr'] * last[0])"
)
_UNDER_A_NAME = (
    "shared = self.state['shared']\nif 'sum' not in shared:\n    shared['sum'] = torch.zeros_like(p)\n"
    "shared['sum'] = shared['sum'] + p.grad\np.sub_(group['lr'] * shared['sum'])"
)
_IN_BOTH = (
    _IN_GROUP + "\nstate = self.state[p]\nstate['m'] = state.get('m', torch.zeros_like(p)) + p.grad\np.sub_(state['m'])"
)


def _stepped_then_moved(hold: str) -> tuple[str, ...]:
    return (
        _keeping(hold) + _STEP,
        "net = nn.Linear(3, 1, bias=False)\nopt = Keeping(net.parameters())\nstep(net, opt)",
        "net.to(DEV)",
        "step(net, opt)\nout = net.weight",
    )


NOTEBOOKS = [
    Notebook(
        "group_of_a_loaded_optimizer",
        (_keeping(_IN_GROUP) + _STEP, *_LOADED),
        '            group[key] = value.to(group["params"][0].device)',
    ),
    Notebook(
        "list_in_a_group_of_a_loaded_optimizer",
        (_keeping(_IN_LIST_OF_GROUP) + _STEP, *_LOADED),
        '            group[key] = moved(value, group["params"][0].device)',
    ),
    Notebook(
        "group_of_an_optimizer_that_stepped_before",
        _stepped_then_moved(_IN_GROUP),
        '            group[key] = value.to(group["params"][0].device)',
    ),
    Notebook("lists_in_the_state", _stepped_then_moved(_IN_LISTS), "    opt.state[param] = moved(state, param.device)"),
    Notebook(
        "state_of_no_parameter",
        _stepped_then_moved(_UNDER_A_NAME),
        '    opt.state[param] = moved(state, getattr(param, "device", opt.param_groups[0]["params"][0].device))',
    ),
    Notebook("state_and_groups", _stepped_then_moved(_IN_BOTH), "            state[key] = value.to(param.device)"),
    Notebook(
        "lbfgs_in_an_object",
        (
            IMPORTS + "class Fit:\n    def __init__(self, net):\n        self.net = net\n"
            "        self.opt = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3)\n"
            "    def run(self, x):\n        def loss():\n            self.opt.zero_grad()\n"
            "            found = self.net(x).pow(2).sum()\n            found.backward()\n            return found\n"
            "        return self.opt.step(loss)",
            "fit = Fit(nn.Linear(3, 1))\nfit.run(torch.ones(2, 3))",
            "fit.net.to(DEV)\nout = fit.run(torch.ones(2, 3, device=DEV))",
        ),
        "    fit.opt.state[param] = moved(state, param.device)",
    ),
    Notebook(
        "lbfgs_by_its_name",
        (
            IMPORTS + "net = nn.Linear(3, 1)\nopt = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=2)\n"
            "def run(x):\n    def loss():\n        opt.zero_grad()\n"
            "        found = net(x).pow(2).sum()\n        found.backward()\n        return found\n"
            "    return opt.step(loss)",
            "for _ in range(2):\n    run(torch.ones(2, 3))",
            "net.to(DEV)",
            "out = run(torch.ones(2, 3, device=DEV))",
        ),
        "    opt.state[param] = moved(state, param.device)",
    ),
]


@pytest.mark.parametrize("case", NOTEBOOKS, ids=lambda case: case.name)
def test_what_an_optimizer_keeps(case: Notebook) -> None:
    assert check_first_fix(case).cause == "optimizer_state"


def test_a_rate_stays_on_the_host() -> None:
    import torch

    net = torch.nn.Linear(2, 1, device="meta")
    opt = torch.optim.Adam(net.parameters(), lr=torch.tensor(0.1))
    assert "param_groups" not in moving(opt, "opt", ())
    opt.param_groups[0]["sum"] = torch.zeros(1)
    assert 'if key not in ("params", "lr")' in moving(opt, "opt", ())


def test_names_in_use_are_left_alone() -> None:
    assert moving(None, "opt", ("value",)).splitlines()[-1].strip() == "state_[key_] = value_.to(param_.device)"
    assert "value_" not in moving(None, "opt", ("moved", "group"))
