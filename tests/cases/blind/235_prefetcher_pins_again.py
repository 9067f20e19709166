# id = "235"
# cause = "must_be_cpu"
# also_causes = ["cuda_in_dataset"]
# culprit = "sample['spec']"
# also_culprit = ["batch['spec']", "v", "value", "self.cache[i]", "self.cache", "stage(b)", "b['spec']"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [2, 4]
# origin = "spec = self.extract(self.waves[i].to(self.device))"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 4
# fix_site = "dataset or prefetcher"
# visible = "first user frame"
# expect_after_fix = "len(seen) == 3 and all(s.device == torch.device(DEV) for s in seen)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "v.pin_memory() if torch.is_tensor(v) else v"
# new = "v.pin_memory() if torch.is_tensor(v) and v.device.type == 'cpu' else v"
# [rerun]
# cells = [3, 4]

# %%
import torch
from collections import deque
from itertools import islice

# %%
class SpecDataset:
    """features are computed on the accelerator, that is 20x faster"""
    def __init__(self, waves, device):
        self.waves, self.device = waves, device

    @staticmethod
    def extract(w):
        return torch.fft.rfft(w).abs()

    def __iter__(self):
        for i in range(len(self.waves)):
            spec = self.extract(self.waves[i].to(self.device))
            yield {'spec': spec, 'name': f'clip{i}', 'n': torch.tensor(len(self.waves[i]))}

# %%
def pinned(sample):
    return {k: v.pin_memory() if torch.is_tensor(v) else v for k, v in sample.items()}

class Prefetcher:
    """keeps `depth` pinned samples ready and moves them asynchronously"""
    def __init__(self, source, device, depth=2):
        self.source, self.device, self.depth = source, device, depth

    def __iter__(self):
        it = iter(self.source)
        ready = deque(pinned(s) for s in islice(it, self.depth))
        while ready:
            sample = ready.popleft()
            ready.extend(pinned(s) for s in islice(it, 1))
            yield {k: v.to(self.device, non_blocking=True) if torch.is_tensor(v) else v
                   for k, v in sample.items()}

# %%
waves = [torch.sin(torch.arange(32.) * f) for f in (.2, .5, 1.1)]
seen = []
for batch in Prefetcher(SpecDataset(waves, DEV), DEV):
    seen.append(batch['spec'] / batch['n'])
