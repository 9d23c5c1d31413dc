"""The pages of versions: their list, the comparison of two versions, and the preview of a migration."""
