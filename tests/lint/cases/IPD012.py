import os

import torch

os.environ["CUDA_VISIBLE_DEVICES"] = "0"
x = torch.zeros(3, device="cuda")
os.environ["CUDA_VISIBLE_DEVICES"] = "1"  # here
