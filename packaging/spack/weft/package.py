# SPDX-License-Identifier: BSD-3-Clause
"""weft in Spack: copy the folder `weft` below the packages of a repository of your own, then `spack install weft`."""
from spack.package import *


class Weft(CMakePackage):
    """MPI library (C, MPI 5.0 standard ABI) whose messages move while the program computes."""

    license("BSD-3-Clause")
    # A release: `version("0.1.0", sha256=..., url=...)` with what tools/release prints.
    version("main", branch="main")

    provides("mpi@:4.1")

    variant("ofi", default=True, description="the libfabric driver")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type=("build", "run"))
    depends_on("hwloc@2:")
    depends_on("libsodium")
    depends_on("libfabric@1.11:", when="+ofi")

    conflicts("platform=darwin", msg="weft is for Linux")
    conflicts("target=ppc64:", msg="big-endian machines are unsupported")

    generator("ninja")

    def setup_run_environment(self, env):
        env.set("MPICC", join_path(self.prefix.bin, "mpicc"))
        env.set("MPICXX", join_path(self.prefix.bin, "mpicxx"))
        env.set("MPIFC", join_path(self.prefix.bin, "mpifort"))

    def setup_dependent_build_environment(self, env, dependent_spec):
        self.setup_run_environment(env)
        env.set("WEFT_CC", spack_cc)
        env.set("WEFT_CXX", spack_cxx)
        env.set("WEFT_FC", spack_fc)

    def setup_dependent_package(self, module, dependent_spec):
        self.spec.mpicc = join_path(self.prefix.bin, "mpicc")
        self.spec.mpicxx = join_path(self.prefix.bin, "mpicxx")
        self.spec.mpifc = join_path(self.prefix.bin, "mpifort")
        self.spec.mpif77 = join_path(self.prefix.bin, "mpif77")
