// Words of pipelines: to come.
