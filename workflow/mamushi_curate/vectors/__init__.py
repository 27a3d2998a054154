IDS = ".txt"  # of the file of ids beside a shard of safetensors
