# What happens at the begin and end of a run.
import shutil


def end(succeeded):
    """After the last job of a run. What only saved time goes; a run that failed leaves it for the
    next one."""
    if succeeded:
        shutil.rmtree(paths.CACHE, ignore_errors=True)
        shutil.rmtree(paths.CLAIMS, ignore_errors=True)
        sweeps = any(job.rule.name.endswith("half_gap") for job in workflow.dag.jobs)
        curves = all_tables()["half_gap"].needs
        if sweeps and not all(map(os.path.exists, curves(config)[0])):
            words = "finer budgets are still to be measured: run the same command again"
            print(words, file=sys.stderr)
    hooks.end(workflow.overwrite_configfiles)


# For a workflow that imports this one, too: Snakemake skips hooks of a module.
hooks.started, hooks.ended = partial(explained, hooks.begin, config), end


onstart:
    hooks.started()


onsuccess:
    end(succeeded=True)


onerror:
    end(succeeded=False)
