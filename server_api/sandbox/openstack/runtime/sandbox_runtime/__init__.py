"""What runs inside the OpenStack processes of the sandbox, under their own virtual environment.

Nothing of server_api is importable here, and nothing here is imported by server_api. The folder above is put
on PYTHONPATH; the dist-info folder in it is how Neutron finds the mechanism driver.
"""
