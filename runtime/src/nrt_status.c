/* SPDX-License-Identifier: Apache-2.0 */
/* The table of libnrt's statuses. The library's own nrt_get_status_as_str is declared in its header but
 * not exported by every release, so the names are here. */
#include "nrt_status.h"

#define ROW(name, status, retry, lost, text)                                                   \
    {                                                                                          \
        NRT_##name, "NRT_" #name, status, retry, lost, text                                    \
    }

static const NrtStatusRow rows[] = {
    ROW(SUCCESS, TDSL_OK, false, false, "success"),
    ROW(FAILURE, TDSL_E_DEVICE, false, false, "failure without a reason"),
    ROW(INVALID, TDSL_E_ARGUMENT, false, false, "invalid argument"),
    ROW(INVALID_HANDLE, TDSL_E_DEVICE, false, false, "invalid handle"),
    ROW(RESOURCE, TDSL_E_MEMORY, false, false, "out of device resources"),
    ROW(TIMEOUT, TDSL_E_TIMEOUT, false, false, "the device timed out"),
    ROW(HW_ERROR, TDSL_E_DEVICE_LOST, false, true, "hardware error"),
    ROW(QUEUE_FULL, TDSL_E_DEVICE, true, false, "the queue stays full"),
    ROW(LOAD_NOT_ENOUGH_NC, TDSL_E_DEVICE, false, false, "too few free NeuronCores"),
    ROW(UNSUPPORTED_NEFF_VERSION, TDSL_E_NEFF, false, false,
        "NEFF of a version this library does not run: compile it again"),
    ROW(FAIL_HOST_MEM_ALLOC, TDSL_E_MEMORY, false, false, "out of host memory"),
    ROW(UNINITIALIZED, TDSL_E_DEVICE_LOST, false, true, "the library is not initialised"),
    ROW(CLOSED, TDSL_E_DEVICE_LOST, false, true, "the library was closed"),
    ROW(QUEUE_EMPTY, TDSL_E_DEVICE, false, false, "the queue is empty"),
    ROW(EXEC_UNIT_UNRECOVERABLE, TDSL_E_DEVICE_LOST, false, true,
        "the execution unit cannot recover"),
    ROW(EXEC_BAD_INPUT, TDSL_E_ARGUMENT, false, false, "an input the program does not take"),
    ROW(EXEC_COMPLETED_WITH_NUM_ERR, TDSL_E_NUMERICAL, false, false,
        "finished with a numerical error; the results are delivered"),
    ROW(EXEC_COMPLETED_WITH_ERR, TDSL_E_DEVICE, false, false, "finished with errors"),
    ROW(EXEC_NC_BUSY, TDSL_E_DEVICE, false, false, "the NeuronCore is busy"),
    ROW(EXEC_OOB, TDSL_E_DEVICE, false, true, "the program accessed memory out of bounds"),
    ROW(COLL_PENDING, TDSL_E_DEVICE, false, false, "a collective operation is pending"),
    ROW(EXEC_HW_ERR_COLLECTIVES, TDSL_E_DEVICE_LOST, false, true,
        "hardware error in collectives"),
    ROW(EXEC_HW_ERR_HBM_UE, TDSL_E_DEVICE_LOST, false, true,
        "uncorrectable error in device memory"),
    ROW(EXEC_HW_ERR_NC_UE, TDSL_E_DEVICE_LOST, false, true,
        "uncorrectable error in a NeuronCore"),
    ROW(EXEC_HW_ERR_DMA_ABORT, TDSL_E_DEVICE_LOST, false, true, "a DMA was aborted"),
    ROW(EXEC_SW_NQ_OVERFLOW, TDSL_E_DEVICE_LOST, false, true, "notification queue overflow"),
    ROW(EXEC_HW_ERR_REPAIRABLE_HBM_UE, TDSL_E_DEVICE_LOST, false, true,
        "repairable error in device memory"),
    ROW(NETWORK_PROXY_FAILURE, TDSL_E_DEVICE_LOST, false, true, "network proxy failure"),
};

const NrtStatusRow *tdsl_nrt_status_row(NrtStatus native)
{
    static const NrtStatusRow unknown = {-1,
                                         "unknown status",
                                         TDSL_E_DEVICE,
                                         false,
                                         false,
                                         "a status this runtime does not know"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].native == native) {
            return &rows[i];
        }
    }
    return &unknown;
}
