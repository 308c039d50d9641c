"""The pure engine: values in, values out. Its public names stand in `assembler`."""
