"""Results to tables and pages, beside the published figures."""
