*** Settings ***
Documentation       What the router must do before it is released.
Library             dutperf.automation.robot_library.Dutperf
...                     testbed=${CURDIR}/../pytest-project/testbed.yaml
...                     results=${RESULTS}    simulated_fps=${SIMULATED_FPS}

*** Variables ***
${RESULTS}              results
# Empty: the testbed is measured. A number: a simulated device forwards so many frames/s.
${SIMULATED_FPS}        ${EMPTY}

*** Test Cases ***
It Forwards Enough
    Measure    throughput    preset=quick    frame_size=[64]
    Figure Should Be At Least    100000 fps

It Is Quick At Half Of Its Load
    Measure    latency    preset=quick    frame_size=[64]    rate_fps=50000
    Figure Should Be At Most    1 ms
    Figure Should Be At Most    5 ms    figure=WCL
