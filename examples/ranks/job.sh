#!/usr/bin/env bash
#SBATCH --job-name=mp2
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --time=01:00:00
# sbatch job.sh FOLDER: DF-MP2 from the integrals in FOLDER, one rank a node and as many threads as it has cores. Each rank reads and writes its
# own blocks of the files.
set -euo pipefail
folder=$1
here=${TDSL_EXAMPLE:-$SLURM_SUBMIT_DIR}
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK OMP_PROC_BIND=close
run() { srun tdsl-run-mpi "$here/mp2.tdsl" -w --timeout=3600 "$@"; }
run --kernel=ao_to_mo eri="$folder/eri3.npy" Co="$folder/Co.npy" Cv="$folder/Cv.npy" W="$folder/W.npy" -o "$folder/B.npy"
run --kernel=mp2_energy B="$folder/B.npy" eo="$folder/eo.npy" ev="$folder/ev.npy" -o "$folder/E.npy"
