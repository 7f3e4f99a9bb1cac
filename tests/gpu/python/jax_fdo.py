"""What JAX's profile for profile-guided compilation (FDO) says of a sum over devices."""
import tempfile

import jax
from jax._src.profiler import stop_and_get_fdo_profile
import jax.numpy as jnp


def main():
    with tempfile.TemporaryDirectory() as folder:
        jax.profiler.start_trace(folder)
        try:
            jax.pmap(lambda x: jax.lax.psum(x + 1, "i"), axis_name="i")(jnp.ones(jax.local_device_count()))
        finally:
            profile = stop_and_get_fdo_profile()
    print("operators of the profile:", *sorted(name for name in ("copy",) if name.encode() in profile))


if __name__ == "__main__":
    main()
