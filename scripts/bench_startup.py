"""Times commands in turn, A B C A B C …, so that drift of the machine hits all alike; see scripts/bench."""
import json, os, shutil, statistics, subprocess, sys, time

runs, plan, sandboxrun, srt, out = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5]


def bwrap_with_the_same_mounts():
    """bubblewrap's arguments for the files of the plan; generated files and overlays become what costs bwrap the least."""
    args = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup", "--unshare-net",
            "--uid", "1000", "--gid", "1000", "--as-pid-1", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    section = False
    for line in open(plan):
        if line.startswith("files, in the order"):
            section = True
            continue
        if not section or not line.startswith("  "):
            section = section and line.startswith("  ")
            continue
        access, rest = line.strip().split(None, 1)
        target, _, source = rest.partition(" ← ")
        if " → " in rest:
            link, points = rest.split(" → ")
            args += ["--symlink", points, link]
        elif rest == "/proc":
            args += ["--proc", "/proc"]
        elif rest == "/dev":
            args += ["--dev", "/dev"]
        elif "(empty" in rest:
            args += ["--tmpfs", rest.split(" ")[0]]
        elif "(generated)" in rest:
            args += ["--ro-bind", "/dev/null", rest.split(" ")[0]]
        elif access == "copy":
            args += ["--bind", source, target]
        else:
            args += ["--ro-bind", source or rest, target]
    return args + ["--remount-ro", "/", "--", "true"]


commands = {
    "sandboxrun exec": [sandboxrun, "exec", "--quiet", "--", "true"],
    "bwrap, same mounts": bwrap_with_the_same_mounts(),
    "bwrap, minimal": ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"],
    "firejail": ["firejail", "--quiet", "--noprofile", "--net=none", "true"],
    "srt": [srt, "true"],
}
commands = {name: argv for name, argv in commands.items() if shutil.which(argv[0])}
times = {name: [] for name in commands}
env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
for turn in range(runs + 1):
    for name, argv in list(commands.items()):
        start = time.perf_counter()
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
        if done.returncode != 0:
            print(f"left out: {name}: exit status {done.returncode}: {done.stdout.decode(errors='replace').strip()[:200]}")
            del commands[name], times[name]
        elif turn > 0:  # the first round warms up
            times[name].append(time.perf_counter() - start)

own = times["sandboxrun exec"]
rows = {}
for name, measured in times.items():
    ratio = statistics.median(a / b for a, b in zip(own, measured))
    rows[name] = {"median_ms": round(statistics.median(measured) * 1e3, 2), "min_ms": round(min(measured) * 1e3, 2),
                  "max_ms": round(max(measured) * 1e3, 2), "sandboxrun_takes_times": round(ratio, 3)}
print(f"start-up: wall time of the command 'true', {runs} runs of each in turn")
print(f"{'':22}{'median':>9}{'min':>9}{'max':>9}   sandboxrun / it (median of pairs)")
for name, row in rows.items():
    print(f"{name:22}{row['median_ms']:9.2f}{row['min_ms']:9.2f}{row['max_ms']:9.2f} ms {row['sandboxrun_takes_times']:8.2f}")
json.dump({"benchmark": "startup", "runs": runs, "rows": rows}, open(out, "w"), indent=2)
print(f"figures in {os.path.basename(out)}")
